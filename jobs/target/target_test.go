package target_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// submitAll runs in through to and returns account and verdict.
func submitAll(t *testing.T, to target.Target, in string) (submit.Account, submit.Verdict) {
	t.Helper()
	l := submit.NewLedger()
	r, err := submit.New(submit.Options{Ledger: l, IDPrefix: "t:", Window: 512})
	require.NoError(t, err)
	a, err := r.Run(context.Background(), strings.NewReader(in), to)
	require.NoError(t, err)
	require.NoError(t, to.ReadBack(context.Background(), l.Found))
	return a, l.Verdict()
}

func mixedJobs(n int) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d \x00\xff\xc3( %s\r\n", i, strings.Repeat("x", i%700))
	}
	return b.String()
}

func TestJobsReachTheEmbeddedServerByteForByte(t *testing.T) {
	to := open(t, "embedded:", target.Options{})
	a, v := submitAll(t, to, mixedJobs(8_000))
	require.EqualValues(t, 8_000, a.Answered)
	require.Zero(t, a.Failed)
	require.Equal(t, submit.Verdict{}, v)
	require.EqualValues(t, 8_000+1, to.Engine().Settled, "one more for the look at the stream's end")
}

func TestJobsReachARealServerByteForByte(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	s.Text("XADD", "in", "*", "id", "t:1", "queue", "default", "payload", "somebody else's, from before")
	s.Text("XADD", "other", "*", "x", "y")
	to := open(t, streamURL(s, "in"), target.Options{Retries: 2})
	a, v := submitAll(t, to, mixedJobs(8_000))
	require.EqualValues(t, 8_000, a.Answered)
	require.Zero(t, a.Failed)
	require.Equal(t, submit.Verdict{}, v, "what was there before is not read back")
	require.Equal(t, 8_001, s.Int("XLEN", "in"))
}

func TestEntriesOfOthersAreShownAsTheyAre(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	to := open(t, streamURL(s, "in"), target.Options{})
	s.Text("XADD", "in", "*", "colour", "blue")
	s.Text("XADD", "in", "*", "payload", "p", "queue", "q", "id", "i")
	var got []string
	require.NoError(t, to.ReadBack(context.Background(), func(id, queue, payload []byte) {
		got = append(got, fmt.Sprintf("%s|%s|%s", id, queue, payload))
	}))
	require.Equal(t, []string{"||", "i|q|p"}, got)
}

func TestARefusedJobIsAnsweredAndFailed(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	to := open(t, streamURL(s, "in"), target.Options{})
	s.Text("SET", "in", "no stream any more")
	r, err := submit.New(submit.Options{})
	require.NoError(t, err)
	a, err := r.Run(context.Background(), strings.NewReader("a\nb\nc\n"), to)
	require.NoError(t, err)
	require.EqualValues(t, 3, a.Answered)
	require.EqualValues(t, 3, a.Failed)
}

func TestOpenFailsWhenTheServerCannotServe(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{Password: "right"})
	s.Text("SET", "taken", "x")
	for name, tc := range map[string]struct{ spec, want string }{
		"wrong password": {"redis://:wrong@" + s.Addr(), "WRONGPASS"},
		"not a stream":   {"redis://:right@" + s.Addr() + "?stream=taken", "WRONGTYPE"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			_, err := target.Open(ctx, []string{tc.spec}, target.Options{})
			require.ErrorContains(t, err, tc.want)
		})
	}
	s.Kill9()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := target.Open(ctx, []string{"redis://:right@" + s.Addr()}, target.Options{MaxOutage: 50 * time.Millisecond})
	require.ErrorIs(t, err, fdengine.ErrUnavailable)
	require.ErrorIs(t, err, fdengine.ErrNotSent)
}
