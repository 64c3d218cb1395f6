package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/state"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// make resumerun raises these.
var (
	resumeJobs  = flag.Int("resume.jobs", 6000, "jobs of the tests that interrupt jobsub")
	resumeCount = flag.Int("resume.count", 2, "interruptions of each kind")
	resumeRate  = flag.Int("resume.rate", 6000, "jobs per second")
)

// bigFile writes n jobs, with ids or as plain lines.
func bigFile(t *testing.T, n int, ids bool) string {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		if ids {
			fmt.Fprintf(&b, "{\"id\":\"job-%d\",\"queue\":\"q\",\"payload\":{\"n\":%d,\"pad\":%q}}\n", i, i, strings.Repeat("x", i%200))
		} else {
			fmt.Fprintf(&b, "job %d\n", i)
		}
	}
	return file(t, b.String())
}

// until sends sig to the process once it reads jobs and size says that so many are there, or lets it end by itself.
func until(t *testing.T, b *built, sig os.Signal, size func() int, at int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	b.await(t, "format: ") // before it has its handler it would die of an interrupt as of any signal
	ended := make(chan struct{})
	go func() {
		_ = b.Wait() // its exit code says more
		close(ended)
	}()
	for sent := false; ; {
		select {
		case <-tick.C:
			if !sent && size() >= at {
				sent = true
				_ = b.Process.Signal(sig) // fails only when it has ended by itself
			}
		case <-ended:
			return
		}
	}
}

// interrupted runs the command line again and again and ends it at random, by each signal in turn. It returns how often it
// was ended in the middle of the input.
func interrupted(t *testing.T, statefile string, ids bool, jobs int, size func() int, args ...string) (cut int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	signals := []os.Signal{os.Interrupt, syscall.SIGKILL}
	kills := len(signals) * *resumeCount
	slice := jobs / (kills + 1)
	for k := range kills {
		at := k*slice + 1 + rnd.IntN(slice)
		before, err := state.Load(statefile)
		require.NoError(t, err)
		b := start(t, args...)
		until(t, b, signals[k%2], size, at)
		p, err := state.Load(statefile)
		require.NoError(t, err)
		whole := p.Acked.Watermark() == int64(jobs)
		if !whole {
			cut++
		}
		t.Logf("%v at %d jobs: exit %d, announced %d, acknowledged %d, free %d", signals[k%2], size(), b.ProcessState.ExitCode(),
			p.Sent, p.Acked.Count(), p.Free.Count())
		if signals[k%2] == os.Interrupt && !whole {
			require.Equal(t, exitInterrupted, b.ProcessState.ExitCode())
			if ids {
				for n := int64(1); n <= p.Sent; n++ {
					require.False(t, p.Doubt(n) && !before.Doubt(n), "line %d: an interrupted run leaves nothing in doubt that was not", n)
				}
			}
		}
	}
	return cut
}

// Covers: S3-24
func TestInterruptedAndKilledAtRandomEachIDHasExactlyOneEntry(t *testing.T) {
	n := *resumeJobs
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	w := s.Witness()
	size := func() int {
		v, err := w.Do("XLEN", "in")
		require.NoError(t, err)
		return int(v.(int64))
	}
	in, statefile := bigFile(t, n, true), filepath.Join(t.TempDir(), "state")
	args := []string{"submit", "--to", "redis://" + s.Addr() + "/0?stream=in", "--resume", statefile, "--quiet",
		"--rate", strconv.Itoa(*resumeRate), in}
	cut := interrupted(t, statefile, true, n, size, args...)
	require.GreaterOrEqual(t, cut, *resumeCount, "most of the signals must have come in the middle")

	code, out, errs := jobsub("", append(args, "--verify", "--rate", "0")...)
	require.Zero(t, code, errs)
	require.Contains(t, out, " not_sent=0 maybe=0 lost=0 duplicated=0 ")
	require.Contains(t, out, " earlier=")

	require.Equal(t, n, size())
	require.Equal(t, n, s.Int("SCARD", "in:ids"))
	seen := map[string]bool{}
	for after := "-"; ; {
		v, err := w.Do("XRANGE", "in", after, "+", "COUNT", "5000")
		require.NoError(t, err)
		entries := v.([]any)
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			after = "(" + e.([]any)[0].(string)
			f := e.([]any)[1].([]any)
			id := f[1].(string)
			require.False(t, seen[id], "%s is there twice", id)
			seen[id] = true
			i, err := strconv.Atoi(strings.TrimPrefix(id, "job-"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("{\"n\":%d,\"pad\":%q}", i, strings.Repeat("x", i%200)), f[5])
		}
	}
	require.Len(t, seen, n)

	code, out, _ = jobsub("", args...)
	require.Zero(t, code)
	require.Contains(t, out, fmt.Sprintf("account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s earlier=%d", n))
}

func TestInterruptedAndKilledAtRandomNoLineWithoutIDIsThereTwice(t *testing.T) {
	n := *resumeJobs
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	w := s.Witness()
	elements := func() map[string]int {
		v, err := w.Do("LRANGE", "in", "0", "-1")
		require.NoError(t, err)
		all := map[string]int{}
		for _, e := range v.([]any) {
			all[e.(string)]++
		}
		return all
	}
	size := func() int {
		v, err := w.Do("LLEN", "in")
		require.NoError(t, err)
		return int(v.(int64))
	}
	in, dir := bigFile(t, n, false), t.TempDir()
	statefile, report := filepath.Join(dir, "state"), filepath.Join(dir, "report")
	args := []string{"submit", "--to", "redis://" + s.Addr() + "/0?list=in", "--resume", statefile, "--report", report, "--quiet", in}
	interrupted(t, statefile, false, n, size, append(args, "--rate", strconv.Itoa(*resumeRate))...)

	code, out, errs := jobsub("", append(args, "--verify")...)
	require.Contains(t, out, " lost=0 duplicated=0 ")
	listed := map[string]bool{}
	b, err := os.ReadFile(report)
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var note submit.Note
		require.NoError(t, d.Decode(&note))
		require.Equal(t, "maybe executed", note.Fate)
		listed[fmt.Sprintf("job %d", note.Line-1)] = true
	}
	t.Logf("%d in doubt", len(listed))
	require.Equal(t, len(listed) > 0, code == exitFailed, errs)
	there := elements()
	for i := range n {
		job := fmt.Sprintf("job %d", i)
		require.LessOrEqual(t, there[job], 1, job)
		require.True(t, there[job] == 1 || listed[job], "%s is neither there nor listed", job)
	}

	code, out, errs = jobsub("", append(args, "--maybe", "resend")...)
	require.Zero(t, code, errs)
	require.Contains(t, out, fmt.Sprintf("account: accepted=%d answered=%d ", len(listed), len(listed)))
	for job, copies := range elements() {
		require.True(t, copies == 1 || copies == 2 && listed[job], "%s is there %d times", job, copies)
	}
	require.Len(t, elements(), n)
}

func TestAStateFileRefusesWhatItIsNotAbout(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	dir := t.TempDir()
	statefile, in := filepath.Join(dir, "state"), file(t, "a\nb\n")
	to := "redis://" + s.Addr() + "/0?list=in"
	code, _, errs := jobsub("", "submit", "--to", to, "--resume", statefile, in)
	require.Zero(t, code, errs)
	other := file(t, "a\nc\n")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"another input":   {[]string{"--to", to, "--resume", statefile, other}, "belongs to another input than " + other},
		"another target":  {[]string{"--to", to + "2", "--resume", statefile, in}, "begun with targets"},
		"another setting": {[]string{"--to", to, "--resume", statefile, "--queue", "q", in}, `queue "default", this run has "q"`},
		"the input":       {[]string{"--to", to, "--resume", other, in}, "is no state file"},
		"standard input":  {[]string{"--to", to, "--resume", statefile}, "--resume needs a FILE"},
		"embedded":        {[]string{"--to", "embedded:", "--resume", statefile, in}, "gone with the run"},
		"from a line":     {[]string{"--to", to, "--resume", statefile, "--from-line", "2", in}, "--resume and --from-line are both given"},
		"no such choice":  {[]string{"--to", to, "--maybe", "perhaps", in}, `--maybe is "perhaps"`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := jobsub("", append([]string{"submit"}, tc.args...)...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, out, "account: accepted=0 ")
			require.Contains(t, errs, tc.want)
			code, out, dry := jobsub("", append([]string{"submit", "--dry-run"}, tc.args...)...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, out, "dry run, nothing was sent: jobs=0 ")
			require.Contains(t, dry, tc.want, "a dry run sees it too")
		})
	}
	require.Equal(t, 2, s.Int("LLEN", "in"))
}
