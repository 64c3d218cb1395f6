package target_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// submitted runs in through to.
func submitted(t *testing.T, to target.Target, in string) submit.Account {
	t.Helper()
	r, err := submit.New(submit.Options{IDPrefix: "t:"})
	require.NoError(t, err)
	a, err := r.Run(context.Background(), strings.NewReader(in), to)
	require.NoError(t, err)
	return a
}

const threeJobs = `{"id":"a","payload":1}
{"id":"b","payload":2}
{"payload":3}
{"id":"a","payload":4}
`

func TestAJobWhoseIDIsKnownIsAnsweredAndNotAddedAgain(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	for _, kind := range []string{"stream", "list"} {
		t.Run(kind, func(t *testing.T) {
			spec := redisURL(s, kind, kind)
			a := submitted(t, open(t, spec, target.Options{}), threeJobs)
			require.Equal(t, []int64{4, 3, 1}, []int64{a.Answered, a.Once, a.Known})
			require.Equal(t, map[string]int{"1": 1, "2": 1, "3": 1}, listOrStreamJobs(t, s, kind, kind))
			a = submitted(t, open(t, spec, target.Options{}), threeJobs)
			require.Equal(t, []int64{4, 3, 3}, []int64{a.Answered, a.Once, a.Known})
			require.Equal(t, map[string]int{"1": 1, "2": 1, "3": 2}, listOrStreamJobs(t, s, kind, kind))
			a = submitted(t, open(t, spec, target.Options{IDs: target.IDsNever}), threeJobs)
			require.Equal(t, []int64{4, 0, 0}, []int64{a.Answered, a.Once, a.Known})
			require.Equal(t, map[string]int{"1": 2, "2": 2, "3": 3, "4": 1}, listOrStreamJobs(t, s, kind, kind))
			a = submitted(t, open(t, spec, target.Options{IDs: target.IDsAlways}), threeJobs)
			require.Equal(t, []int64{4, 4, 3}, []int64{a.Answered, a.Once, a.Known}, "t:3 is new")
		})
	}
}

func TestAnIDIsNotRememberedWhenItsJobCouldNotBeAdded(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	to := open(t, streamURL(s, "in"), target.Options{})
	s.Text("SET", "in", "no stream any more")
	a := submitted(t, to, threeJobs)
	require.EqualValues(t, 4, a.Failed)
	require.Zero(t, a.Once)
	require.Zero(t, s.Int("SCARD", "in:ids"))

	s.Text("DEL", "in")
	s.Text("SET", "in:ids", "no set")
	a = submitted(t, open(t, streamURL(s, "in"), target.Options{}), threeJobs)
	require.EqualValues(t, 3, a.Failed)
	require.Equal(t, 1, s.Int("XLEN", "in"), "only the job without an id")
}

func TestAServerThatForgetsTheScriptIsToldItAgain(t *testing.T) {
	const n = 5000
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	to := open(t, streamURL(s, "in"), target.Options{})
	r, err := submit.New(submit.Options{Window: 256})
	require.NoError(t, err)
	flushed := 0
	in := &lineReader{line: func(i int) string {
		if i%500 == 499 {
			s.Text("SCRIPT", "FLUSH")
			flushed++
		}
		if i == n {
			return ""
		}
		return fmt.Sprintf("{\"id\":\"%d\",\"queue\":\"q\",\"payload\":\"%d %s\"}\n", i, i, strings.Repeat("x", i%300))
	}}
	a, err := r.Run(context.Background(), in, to)
	require.NoError(t, err)
	require.Equal(t, 10, flushed)
	require.Equal(t, []int64{n, n, 0, 0}, []int64{a.Answered, a.Once, a.Known, a.Failed})
	jobs := streamJobs(t, s, "in")
	require.Len(t, jobs, n)
	for i := range n {
		require.Equal(t, 1, jobs[fmt.Sprintf("\"%d %s\"", i, strings.Repeat("x", i%300))])
	}
	require.Contains(t, s.Text("INFO", "commandstats"), "cmdstat_evalsha:", "the digest is used at all")
	require.Contains(t, s.Text("INFO", "errorstats"), "errorstat_NOSCRIPT", "and was not known at times")
}

// lineReader gives one line per Read; an empty one ends it.
type lineReader struct {
	n    int
	line func(i int) string
}

func (l *lineReader) Read(p []byte) (int, error) {
	s := l.line(l.n)
	l.n++
	if s == "" {
		return 0, io.EOF
	}
	return copy(p, s), nil
}
