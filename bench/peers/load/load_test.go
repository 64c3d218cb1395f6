package load

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
)

// A pool of radix that is closed while it dials leaves the goroutines of that connection behind. Its leak is not ours to find.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mediocregopher/radix/v4.(*conn).reader"),
		goleak.IgnoreAnyFunction("github.com/mediocregopher/radix/v4.(*conn).writer"))
}

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

func TestACellOnOneCPUHasOneAndGivesTheOthersBack(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	s := spec("noop", Blocking)
	s.Procs, s.Length = 1, 200*time.Millisecond
	seen := make(chan int, 1)
	time.AfterFunc(s.Warm+s.Length/2, func() { seen <- runtime.GOMAXPROCS(0) })
	_, err := Run(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, 1, <-seen)
	require.Equal(t, 3, runtime.GOMAXPROCS(0))
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

func TestLatenciesOfArrivalsBeginWhenTheyWereDue(t *testing.T) {
	s, err := nullserver.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	c := spec("fullduplex", Open)
	c.Addr, c.Rate, c.Length = s.Addr(), 20_000, 100*time.Millisecond
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.InEpsilon(t, 2000, r.Ops, 0.2, "as many as the rate says, whatever the server does")
	require.Equal(t, r.Ops, r.Samples, "each is timed")
	require.LessOrEqual(t, r.P50, r.P99)
	require.LessOrEqual(t, r.P999, 1.05*r.Max)
	n, err := nullserver.Counted(s.Addr())
	require.NoError(t, err)
	require.Equal(t, r.Total, n.Frames)
}

// stalled is a client whose first call takes long.
type stalled struct {
	takes time.Duration
	once  *sync.Once
}

func (s stalled) Caller(int) contend.Caller { return s }
func (s stalled) Close() error              { return nil }
func (s stalled) Call() error {
	s.once.Do(func() { <-time.After(s.takes) })
	return nil
}

func TestAClientThatStallsPaysForAllThatArrivedMeanwhile(t *testing.T) {
	const stall = 50 * time.Millisecond
	r, err := arrive(stalled{stall, new(sync.Once)}, Spec{Face: Open, Callers: 1, Rate: 10_000, Length: 2 * stall})
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Max, float64(stall))
	require.Greater(t, r.P99, 0.8*float64(stall), "half of what arrived was due before the stall was over")
}

func TestWithoutARateArrivalsTakeWhatTheCallersCan(t *testing.T) {
	c := spec("noop", Open)
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Greater(t, r.Rate, 10_000.0)
}

func TestAWrongReplyEndsArrivals(t *testing.T) {
	s, err := nullserver.ListenWrong("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	c := spec("fullduplex", Open)
	c.Addr, c.Rate = s.Addr(), 10_000
	_, err = Run(t.Context(), c)
	require.ErrorContains(t, err, "NO")
}

func TestValuesOfAnySizeAreStoredAndRead(t *testing.T) {
	for _, get := range []bool{false, true} {
		for _, who := range []string{"fullduplex", "raw limit", "rueidis", "valkey-go", "go-redis pool", "go-redis auto", "radix"} {
			s, err := nullserver.Listen("127.0.0.1:0")
			require.NoError(t, err)
			c := spec(who, Blocking)
			c.Addr, c.Value, c.Get = s.Addr(), 70_000, get
			r, err := Run(t.Context(), c)
			require.NoError(t, err, who)
			require.Positive(t, r.Ops)
			n, err := nullserver.Counted(s.Addr())
			require.NoError(t, err)
			require.Equal(t, r.Total, n.Frames)
			if get {
				require.NoError(t, nullserver.SetValue(s.Addr(), 70_001))
				require.Error(t, callOnce(t, c), "%s notices another value", who)
			}
			require.NoError(t, s.Close())
		}
	}
}

// callOnce is one call of a client that expects what c says.
func callOnce(t *testing.T, c Spec) error {
	t.Helper()
	who, err := contend.Find(c.Contender)
	require.NoError(t, err)
	client, err := who.Open(t.Context(), c.target())
	require.NoError(t, err)
	defer client.Close()
	return client.Caller(0).Call()
}

func TestAFloodedClientHoldsNoMoreThanItsLimits(t *testing.T) {
	s, err := nullserver.ListenSlow("127.0.0.1:0", 10_000_000)
	require.NoError(t, err)
	defer s.Close()
	r, err := Run(t.Context(), Spec{Contender: "fullduplex raw", Face: Flood, Addr: s.Addr(), Value: 1000, Length: 300 * time.Millisecond})
	require.NoError(t, err)
	require.Positive(t, r.Ops)
	require.Positive(t, r.Peak)
	require.Positive(t, r.Limit)
	for _, who := range []string{"fullduplex", "rueidis"} {
		_, err = Run(t.Context(), Spec{Contender: who, Face: Flood, Addr: s.Addr(), Length: time.Millisecond})
		require.Error(t, err, who)
	}
}
