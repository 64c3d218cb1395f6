package load

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/nullserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestABucketIsWithinThreePercentOfItsValues(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<40; v += 1 + v/50 {
		b := bucket(v)
		require.GreaterOrEqual(t, b, last, "order, at %d", v)
		require.Less(t, b, buckets)
		last = b
		require.InDelta(t, float64(v), middle(b), float64(v)/32+0.5, "%d", v)
	}
	require.Less(t, bucket(math.MaxUint64), buckets)
}

func TestQuantilesAreThoseOfTheSamples(t *testing.T) {
	h := new(histogram)
	for i := 1; i <= 1000; i++ {
		h.add(i, time.Duration(i)*time.Microsecond)
	}
	at, n := h.quantiles(0.5, 0.99, 0.999)
	require.EqualValues(t, 1000, n)
	require.InEpsilon(t, 500e3, at[0], 0.04)
	require.InEpsilon(t, 990e3, at[1], 0.04)
	require.InEpsilon(t, 999e3, at[2], 0.04)
	at, n = new(histogram).quantiles(0.5)
	require.Zero(t, n)
	require.Zero(t, at[0])
}

func spec(who string, f Face) Spec {
	return Spec{
		Contender: who, Face: f, Callers: 4, Size: 10, Window: 300, Warm: 10 * time.Millisecond, Length: 30 * time.Millisecond,
	}
}

func TestARunCountsWhatTheServerCounts(t *testing.T) {
	for _, who := range []string{"fullduplex", "raw limit"} {
		for _, f := range []Face{Blocking, Batch, Async} {
			t.Run(who+" "+string(f), func(t *testing.T) {
				s, err := nullserver.Listen("127.0.0.1:0")
				require.NoError(t, err)
				defer s.Close()
				c := spec(who, f)
				c.Addr = s.Addr()
				r, err := Run(t.Context(), c)
				require.NoError(t, err)
				require.Positive(t, r.Ops)
				require.Greater(t, r.Total, r.Ops, "warming up counts")
				require.GreaterOrEqual(t, r.Seconds, 0.03)
				require.InEpsilon(t, float64(r.Ops)/r.Seconds, r.Rate, 1e-9)
				if f != Async || who == "raw limit" {
					require.Positive(t, r.Samples)
					require.LessOrEqual(t, r.P50, r.P99)
				}
				n, err := nullserver.Counted(s.Addr())
				require.NoError(t, err)
				require.Equal(t, r.Total, n.Frames)
			})
		}
	}
}

func TestOneCallInEightIsTimed(t *testing.T) {
	c := spec("noop", Blocking)
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.InDelta(t, float64(r.Ops)/sampleEvery, float64(r.Samples), float64(c.Callers))
}

func TestAFaceThatAContenderLacksIsAnError(t *testing.T) {
	s, err := nullserver.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	for who, f := range map[string]Face{"rueidis": Async, "go-redis pool": Replay} {
		c := spec(who, f)
		c.Addr = s.Addr()
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, ErrNoFace, who)
	}
	_, err = Run(t.Context(), spec("nobody", Blocking))
	require.Error(t, err)
	_, err = Run(t.Context(), spec("noop", "sideways"))
	require.Error(t, err)
}

func TestAWrongReplyEndsTheRun(t *testing.T) {
	s, err := nullserver.ListenWrong("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	c := spec("fullduplex", Blocking)
	c.Addr = s.Addr()
	_, err = Run(t.Context(), c)
	require.ErrorContains(t, err, "NO")
}

func TestAReplaySaysWhatACommandTakesInMemory(t *testing.T) {
	s, err := nullserver.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	r, err := Run(t.Context(), Spec{Contender: "fullduplex raw", Face: Replay, Addr: s.Addr(), Window: 20_000})
	require.NoError(t, err)
	require.EqualValues(t, 20_000, r.Ops)
	require.EqualValues(t, 40_000, r.Total)
	require.Greater(t, r.InFlight, r.Encoded)
}

func TestAProfileIsWritten(t *testing.T) {
	c := spec("noop", Blocking)
	c.Profile = filepath.Join(t.TempDir(), "cpu.prof")
	_, err := Run(t.Context(), c)
	require.NoError(t, err)
	for _, p := range []string{c.Profile, c.Profile + ".allocs"} {
		i, err := os.Stat(p)
		require.NoError(t, err)
		require.Positive(t, i.Size())
	}
}
