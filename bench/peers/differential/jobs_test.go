package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// Covers: E-38
func TestJobsAndRepliesEqualThoseOfGoBeanstalkOneAtATime(t *testing.T) {
	p, used := writeJobs(*seed, *commands)
	first, second := startJobs(t), startJobs(t)
	got := runOurJobs(t, beanstalkd.Options{Addr: first.Addr()}, p)
	want := runTheirJobs(t, second.Addr(), p)
	diffs := jobDifferences(p, got, want)
	require.Empty(t, diffs, "seed %d, %d commands: %d differ", *seed, *commands, len(diffs))
	require.Equal(t, everyJob(t, first.Addr(), p.puts), everyJob(t, second.Addr(), p.puts))
	if *commands < some {
		t.Logf("%d commands are too few to expect of each kind", *commands)
		return
	}
	count := map[string]int{}
	for _, r := range got {
		if word, _, _ := strings.Cut(r, " "); strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
			count[word]++
		}
	}
	t.Log(count)
	for v := put; v <= ignore; v++ {
		require.NotZero(t, used[v], "verb %d", v)
	}
	for _, word := range []string{"INSERTED", "FOUND", "KICKED", "OK", "WATCHING", "NOT_FOUND", "JOB_TOO_BIG", "TIMED_OUT"} {
		require.NotZero(t, count[word], word)
	}
	if *commands >= many {
		require.NotZero(t, count["NOT_IGNORED"])
	}
}

// startJobs runs a server on which all tubes of a program exist for as long as the test runs, since somebody watches
// them.
func startJobs(t *testing.T) *testserver.Process {
	s := testserver.StartBeanstalkd(t, "-z", strconv.Itoa(maxJob))
	_, _, err := beanstalk.NewTubeSet(dialBeanstalk(t, s.Addr()), jobTubes...).Reserve(0)
	require.ErrorIs(t, err, beanstalk.ErrTimeout)
	return s
}

func jobDifferences(p *jobProgram, got, want []string) (out []string) {
	for _, pc := range p.pieces {
		for j := range pc.ops {
			if g, w := got[pc.first+j], want[pc.first+j]; g != w {
				out = append(out, fmt.Sprintf("command %d, manner %d: %s\n  fullduplex   %s\n  go-beanstalk %s",
					pc.first+j, pc.manner, &pc.ops[j], g, w))
			}
		}
	}
	return out
}

// everyJob describes each job of a server, and each tube.
func everyJob(t *testing.T, addr string, puts int) map[string]string {
	c := dialBeanstalk(t, addr)
	out := map[string]string{}
	for id := uint64(1); id <= uint64(puts)+1; id++ {
		body, err := c.Peek(id)
		if errors.Is(err, beanstalk.ErrNotFound) {
			continue
		}
		m, statsErr := c.StatsJob(id)
		out[strconv.FormatUint(id, 10)] = theirFound(id, body, err) + theirStats(statsJob, m, statsErr)
	}
	for _, name := range jobTubes {
		m, err := beanstalk.NewTube(c, name).Stats()
		delete(m, "current-using") // this connection is a user too
		out[name] = theirStats(statsTube, m, err)
	}
	return out
}

func TestOneWrongByteOfAJobIsSeen(t *testing.T) {
	ops := []jobOp{
		{verb: put, tube: "t1", body: []byte("needle"), ttr: longTTR}, {verb: put, tube: "t2", body: []byte("other"), ttr: longTTR},
		{verb: peek, id: 1}, {verb: peek, id: 9}, {verb: kick, tube: "t1", n: 1}, {verb: statsJob, id: 2},
	}
	for _, tc := range []struct {
		name     string
		old, new string
		inward   bool
		wrong    []int
		jobs     bool // the jobs differ
	}{
		{name: "nothing changed"},
		{name: "an id", old: "INSERTED 2", new: "INSERTED 3", inward: true, wrong: []int{1}},
		{name: "a body on its way back", old: "needle", new: "noodle", inward: true, wrong: []int{2}},
		{name: "a statistic", old: "pri: 0", new: "pri: 1", inward: true, wrong: []int{5}},
		{name: "a body on its way there", old: "needle", new: "noodle", wrong: []int{2}, jobs: true},
		{name: "a priority", old: "put 0 0 100000 5", new: "put 1 0 100000 5", wrong: []int{5}, jobs: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &jobProgram{pieces: []jobPiece{{manner: submit, ops: ops}}, size: len(ops)}
			first, second := startJobs(t), startJobs(t)
			var done atomic.Bool
			done.Store(tc.old == "")
			got := runOurJobs(t, beanstalkd.Options{Addr: first.Addr(), DialFunc: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return &wiretap{conn, tc.old, tc.new, tc.inward, &done}, err
			}}, p)
			want := runTheirJobs(t, second.Addr(), p)
			require.True(t, done.Load(), "the change found no place")
			var wrong []int
			for i := range ops {
				if got[i] != want[i] {
					wrong = append(wrong, i)
				}
			}
			require.Equal(t, tc.wrong, wrong, "%q %q", got, want)
			require.Len(t, jobDifferences(p, got, want), len(wrong))
			require.Equal(t, tc.jobs, !maps.Equal(everyJob(t, first.Addr(), 2), everyJob(t, second.Addr(), 2)))
		})
	}
}
