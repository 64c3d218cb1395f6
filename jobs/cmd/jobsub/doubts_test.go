package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/state"
)

// killedAfter makes a state file that of a run which was killed when it had sent all lines and had seen the answers of
// the first ones only.
func killedAfter(t *testing.T, path string, answered int64) {
	t.Helper()
	past, err := state.Load(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	j, err := state.Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Start(past.Origin))
	j.Sending(past.Sent, past.Hash)
	j.Acked(1, answered)
	require.NoError(t, j.Close())
}

func tenLines(t *testing.T) string {
	t.Helper()
	return file(t, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
}

// Jobs without an id on a stream carry their line, and were sent again all the same.
func TestJobsInDoubtAreLookedForWhereTheTargetShowsThem(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := testserver.StartBeanstalkd(t)
	for name, tc := range map[string]struct {
		to, in string
		forget func(t *testing.T)
		size   func() int
	}{
		"stream": {"redis://" + s.Addr() + "?stream=in", tenLines(t), func(t *testing.T) {
			v, err := s.Do("XREVRANGE", "in", "+", "-", "COUNT", "2") // lines 10 and 9
			require.NoError(t, err)
			require.Equal(t, "1", s.Text("XDEL", "in", v.([]any)[1].([]any)[0].(string)))
		}, func() int { return s.Int("XLEN", "in") }},
		"list of whole jobs": {"redis://" + s.Addr() + "?list=l&body=job", file(t, jsonLines(10)), func(t *testing.T) {
			v, err := s.Do("LINDEX", "l", "8")
			require.NoError(t, err)
			require.Equal(t, "1", s.Text("LREM", "l", "1", v.(string)))
		}, func() int { return s.Int("LLEN", "l") }},
		"tube of whole jobs": {"beanstalk://" + b.Addr() + "/t?body=job", file(t, jsonLines(10)), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			statefile := filepath.Join(t.TempDir(), "state")
			args := []string{"submit", "--quiet", "--to", tc.to, "--resume", statefile, tc.in}
			code, _, errs := jobsub("", args...)
			require.Zero(t, code, errs)
			killedAfter(t, statefile, 6)
			if tc.forget == nil {
				code, out, errs := jobsub("", args...)
				require.Zero(t, code, errs)
				require.Contains(t, errs, "4 jobs of earlier runs were in doubt: 4 of them were found")
				require.Contains(t, out, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s earlier=10")
				return
			}
			tc.forget(t)
			code, out, errs := jobsub("", args...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, errs, "4 jobs of earlier runs were in doubt: 3 of them were found")
			require.Contains(t, out, "account: accepted=1 answered=0 not_sent=0 maybe=1 ")
			require.Contains(t, errs, "1 maybe taken: an earlier run may have sent it")
			require.Equal(t, 9, tc.size())

			code, out, errs = jobsub("", append(args, "--maybe", "resend", "--verify")...)
			require.Zero(t, code, errs)
			require.Contains(t, out, "account: accepted=1 answered=1 not_sent=0 maybe=0 lost=0 duplicated=0 ")
			require.Equal(t, 10, tc.size())
			code, out, errs = jobsub("", append(args, "--verify")...)
			require.Zero(t, code, errs)
			require.Contains(t, out, "lost=0 duplicated=0 rate=0/s earlier=10")
		})
	}
}

// The copies that --maybe resend had made were called an error by each later --verify.
func TestAVerifyAfterAnAcceptedResendExplainsTheCopies(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	statefile := filepath.Join(t.TempDir(), "state")
	args := []string{"submit", "--quiet", "--to", "redis://" + s.Addr() + "?list=l", "--resume", statefile, tenLines(t)}
	code, _, errs := jobsub("", args...)
	require.Zero(t, code, errs)
	killedAfter(t, statefile, 6)
	code, out, errs := jobsub("", append(args, "--maybe", "resend", "--verify")...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "account: accepted=4 answered=4 not_sent=0 maybe=0 lost=0 duplicated=4 ")
	for range 2 {
		code, out, errs = jobsub("", append(args, "--verify")...)
		require.Zero(t, code, errs)
		require.Contains(t, out, "lost=0 duplicated=4 ")
		require.Contains(t, errs, "4 copies are of jobs that this or an earlier run sent again")
	}
	s.Text("RPUSH", "l", "1") // a copy of a job that was never in doubt
	code, out, errs = jobsub("", append(args, "--verify")...)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, out, "lost=0 duplicated=5 ")
}

func TestAnIDThatComesTwiceInTheInputIsNotSaidToBeFromBefore(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	code, out, errs := jobsub("{\"id\":\"a\",\"payload\":1}\n{\"id\":\"a\",\"payload\":2}\n{\"id\":\"a\",\"payload\":1}\n",
		"submit", "--quiet", "--to", "redis://"+s.Addr(), "--verify")
	require.Zero(t, code, errs)
	require.Contains(t, out, "lost=0 duplicated=0 ")
	require.Contains(t, out, "once=3 known=2")
	require.Contains(t, errs, "1 of the known jobs are not among what was read back: their ids were there before the run, or came in with another payload")
}

func jsonLines(n int) (s string) {
	for range n {
		s += "{\"payload\":\"x\"}\n"
	}
	return s
}
