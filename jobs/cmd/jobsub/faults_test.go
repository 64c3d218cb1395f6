package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
)

// Faults were told one after the other, some by the names of fields, and some values were taken for the default.
func TestAllFaultsAreToldAtOnceByTheNamesOfTheirOptions(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "jobs.txt")
	require.NoError(t, os.WriteFile(in, []byte("a\n"), 0o600))
	args := []string{
		"submit", "--to", "redis://127.0.0.1:99999?steam=x", "--to", "beanstalk://127.0.0.1:99999/t?ttr=0s&colour=red", "--to", "embedded:",
		"--window", "0", "--max-line", "0", "--from-line", "0", "--max-outage", "0s", "--drain", "-1s", "--rate", "-1", "--retries", "1001", "--no-retry",
		"--format", "xml", "--maybe", "perhaps", "--ids", "some", "--resume", filepath.Join(dir, "state"), "--report", in, in,
	}
	want := []string{
		"--window is 0: want 1 to 1048576", "--max-line is 0: want 1 to 268435456", "--from-line is 0: want at least 1",
		"--max-outage is 0s: want at least 1ms", "--drain is -1s: want at least 0s", "--rate is -1: want 0 to 1e9", "--retries is 1001: want 0 to 1000",
		"--retries and --no-retry are both given", `--format is "xml": want auto, ndjson or lines`, `--maybe is "perhaps": want list or resend`,
		`--ids is "some": want auto, always or never`, "--resume and --from-line are both given", "--resume with embedded:",
		"--report is " + in + ": it would be written over " + in,
		"target 1 (redis://127.0.0.1:99999): unknown parameter steam;", `target 1 (redis://127.0.0.1:99999): pool: Addr "127.0.0.1:99999" has port "99999"`,
		`target 2 (beanstalk://127.0.0.1:99999/t): ttr is "0s"`, "target 2 (beanstalk://127.0.0.1:99999/t): unknown parameter colour",
		`target 2 (beanstalk://127.0.0.1:99999/t): pool: Addr "127.0.0.1:99999" has port "99999"`,
	}
	for _, dry := range []string{"--dry-run", "--quiet"} {
		code, out, errs := jobsub("", append(args, dry)...)
		require.Equal(t, exitFailed, code)
		for _, fault := range want {
			require.Contains(t, errs, "jobsub: "+fault)
		}
		require.Equal(t, len(want), strings.Count(errs, "\n"), errs)
		require.Equal(t, 1, strings.Count(out, "\n"), "the account, and nothing else")
	}
	_, err := os.Stat(filepath.Join(dir, "state"))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing was begun")

	code, out, errs := jobsub("", "submit", "--json", "--window", "many", "--max-outage", "30", "--from-line", "x", "--rate", "fast", in+"x")
	require.Equal(t, exitFailed, code)
	want = []string{`--window is "many": want a whole number`, `--max-outage is "30": want a duration`, `--from-line is "x": want a whole number`,
		`--rate is "fast": want a number`, "--to is not given", "no such file"}
	var s summary
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	for _, fault := range want {
		require.Contains(t, errs, fault)
		require.Contains(t, s.Error, fault)
	}
	require.Equal(t, exitFailed, s.Exit)
	code, _, errs = jobsub("x\n", "submit", "--to", "embedded:", "--resume", "", "--report", "", "--queue", "")
	require.Equal(t, exitFailed, code)
	for _, name := range []string{"resume", "report", "queue"} { // an empty variable of a shell switched them off
		require.Contains(t, errs, "--"+name+" is empty: want")
	}
	// The name of a tube ended the line, and could have told a terminal anything.
	code, _, errs = jobsub("x\n", "submit", "--to", "beanstalk://127.0.0.1/a%0D%0A%1Bb")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "target 1 (beanstalk://127.0.0.1/a%0D%0A%1Bb): ")
	require.Equal(t, 1, strings.Count(errs, "\n"))
	require.NotContains(t, errs, "\x1b")
	for _, outage := range []string{"-1s", "-1ns"} {
		code, _, errs := jobsub("x\n", "submit", "--to", "embedded:", "--max-outage", outage)
		require.Equal(t, exitFailed, code)
		require.Contains(t, errs, "--max-outage is "+outage)
	}
}

// full is an output on which nothing can be written, such as /dev/full.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// Covers: S3-24
func TestAnAccountThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{
		{"submit", "--to", "embedded:"}, {"submit", "--to", "embedded:", "--json"}, {"submit", "--to", "embedded:", "--dry-run"},
		{"submit", "--to", "embedded:", "--dry-run", "--json"}, {"bench", "embedded:", "--jobs", "3"}, {"bench", "embedded:", "--jobs", "3", "--json"},
		{"submit", "--help"},
	} {
		var e bytes.Buffer
		code := run(args, std{strings.NewReader("a\n"), full{}, &e})
		require.Equal(t, exitFailed, code, args)
		require.Contains(t, e.String(), errFull.Error(), args)
	}
}

// Opening a target had a timeout of its own, and its end hid why there was no connection.
func TestOpeningWaitsAsLongAsAJobWouldAndSaysWhyItFailed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	require.NoError(t, l.Close())
	for _, to := range []string{"redis://" + nobody, "redis://" + nobody + "?list=l", "beanstalk://" + nobody + "/t"} {
		start := time.Now()
		code, out, errs := jobsub("a\n", "submit", "--to", to, "--max-outage", "400ms")
		require.Equal(t, exitFailed, code)
		require.GreaterOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.Contains(t, errs, "connection refused")
		require.Regexp(t, accountLine, lastLine(out))
	}
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says a word
	require.NoError(t, err)
	defer deaf.Close()
	code, _, errs := jobsub("a\n", "submit", "--to", "redis://"+deaf.Addr().String(), "--max-outage", "300ms")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "nothing was heard from it for 300ms")
}

func TestAServerThatStartsWhileATargetIsOpenedIsWaitedFor(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	s.Kill9()
	type result struct {
		code int
		out  string
	}
	ended := make(chan result, 1)
	go func() {
		code, out, _ := jobsub("a\n", "submit", "--to", "redis://"+s.Addr(), "--max-outage", "60s")
		ended <- result{code, out}
	}()
	later := time.NewTimer(500 * time.Millisecond)
	<-later.C
	s.Restart()
	r := <-ended
	require.Zero(t, r.code)
	require.Contains(t, r.out, "account: accepted=1 answered=1 ")
}

// A file whose first line began with [ went out as plain lines without a word, and body=job found that out at the
// first job, when a state file was begun.
func TestTheFormatThatWasChosenIsSaidAndFitsTheTargetBeforeAnythingIsSent(t *testing.T) {
	code, _, errs := jobsub("[1]\n[2]\n", "submit", "--to", "embedded:", "--quiet")
	require.Zero(t, code)
	require.Contains(t, errs, "format: lines, since the first line does not begin with {")
	code, _, errs = jobsub("\n{\"payload\":1}\n", "submit", "--to", "embedded:", "--quiet")
	require.Zero(t, code)
	require.Contains(t, errs, "format: ndjson")
	_, _, errs = jobsub("[1]\n", "submit", "--to", "embedded:", "--quiet", "--format", "lines")
	require.NotContains(t, errs, "format:")

	s := testserver.StartRedis(t, testserver.RedisOptions{})
	to := "redis://" + s.Addr() + "?list=l&body=job"
	for _, args := range [][]string{{"--to", to}, {"--to", to, "--dry-run"}, {"--to", to, "--format", "lines"}} {
		code, out, errs := jobsub("\nplain\nlines\n", append([]string{"submit", "--quiet"}, args...)...)
		require.Equal(t, exitFailed, code)
		require.Regexp(t, "body=job", errs)
		require.Regexp(t, "accepted=0|jobs=0", out)
	}
	require.Zero(t, s.Int("LLEN", "l"))
}

// --retries 0 was taken for its default, which is 16 for jobs with ids.
func TestNoRetriesIsWhatZeroRetriesMeans(t *testing.T) {
	for want, args := range map[int][]string{0: nil, -1: {"--retries", "0"}, 3: {"--retries", "3"}} {
		f := flags{to: []string{"embedded:"}, ids: "auto"}
		c := &cobra.Command{RunE: func(c *cobra.Command, _ []string) error {
			o, faults := f.faults(c)
			require.Empty(t, faults)
			require.Equal(t, want, o.Retries)
			return nil
		}}
		f.add(c, false)
		c.SetArgs(append([]string{}, args...))
		require.NoError(t, c.Execute())
	}
}
