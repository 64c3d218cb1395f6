package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/submit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(binaryDir) // does nothing when it was never made
		os.Exit(code)
	}))
}

// jobsub runs one command line in this process.
func jobsub(stdin string, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, std{strings.NewReader(stdin), &o, &e})
	return code, o.String(), e.String()
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jobs.txt")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return lines[len(lines)-1]
}

var accountLine = regexp.MustCompile(`^account: accepted=\d+ answered=\d+ not_sent=\d+ maybe=\d+ lost=(\d+|\?) duplicated=(\d+|\?) rate=\d+/s( once=\d+ known=\d+)?( earlier=\d+)?$`)

// Covers: S3-24
func TestExitCodesAndTheAccountLine(t *testing.T) {
	good := file(t, "a\nb\nc\n")
	corrupt := file(t, "{\"payload\":1}\noops\n{\"payload\":2}\n")
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		code  int
		last  string // start of the last line of standard output; empty: there is none
		errs  string // part of standard error
	}{
		"a file":             {"", []string{"submit", "--to", "embedded:", good}, 0, "account: accepted=3 answered=3 not_sent=0 maybe=0 lost=? duplicated=? ", ""},
		"verified":           {"", []string{"submit", "--to", "embedded:", "--verify", good}, 0, "account: accepted=3 answered=3 not_sent=0 maybe=0 lost=0 duplicated=0 ", ""},
		"standard input":     {"x\ny\n", []string{"submit", "--to", "embedded:"}, 0, "account: accepted=2 ", ""},
		"a dash":             {"x\n", []string{"submit", "--to", "embedded:", "-"}, 0, "account: accepted=1 ", ""},
		"nothing to do":      {"", []string{"submit", "--to", "embedded:", "--verify"}, 0, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=0 duplicated=0 rate=0/s", ""},
		"a corrupt line":     {"", []string{"submit", "--to", "embedded:", corrupt}, 0, "account: accepted=2 ", "line 2: invalid character"},
		"strict":             {"", []string{"submit", "--to", "embedded:", "--strict", corrupt}, 1, "account: accepted=1 ", "line 2"},
		"the rest of a file": {"", []string{"submit", "--to", "embedded:", "--from-line", "3", good}, 0, "account: accepted=1 ", ""},
		"no target":          {"", []string{"submit", good}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "--to is not given"},
		"a bad target":       {"", []string{"submit", "--to", "ftp://x", good}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "want embedded:"},
		"a dead target":      {"", []string{"submit", "--to", "redis://127.0.0.1:1", "--max-outage", "100ms", good}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "connection refused"},
		"no such file":       {"", []string{"submit", "--to", "embedded:", good + "x"}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "no such file"},
		"a directory":        {"", []string{"submit", "--to", "embedded:", t.TempDir()}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "is a directory"},
		"no such format":     {"", []string{"submit", "--to", "embedded:", "--format", "xml", good}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", `"xml"`},
		"a bad window":       {"", []string{"submit", "--to", "embedded:", "--window", "-3", good}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "--window is -3: want 1 to 1048576"},
		"both classes":       {"", []string{"submit", "--to", "embedded:", "--retries", "1", "--no-retry", good}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "--retries and --no-retry are both given"},
		"no such command":    {"", []string{"sbmit"}, 1, "", "unknown command"},
		"no place to report": {"", []string{"submit", "--to", "embedded:", "--report", good + "/x", good}, 1, "account: accepted=0 answered=0 not_sent=0 maybe=0 lost=? duplicated=? rate=0/s", "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := jobsub(tc.stdin, tc.args...)
			require.Equal(t, tc.code, code, "%s%s", out, errs)
			require.Contains(t, errs, tc.errs)
			if tc.last == "" {
				require.Empty(t, out)
				return
			}
			require.True(t, strings.HasPrefix(lastLine(out), tc.last), out)
			require.Regexp(t, accountLine, lastLine(out))
		})
	}
}

func TestJSONIsAloneOnStandardOutput(t *testing.T) {
	code, out, errs := jobsub("a\n\nb\n", "submit", "--to", "embedded:", "--json", "--verify", "--quiet")
	require.Zero(t, code)
	var got map[string]any
	d := json.NewDecoder(strings.NewReader(out))
	require.NoError(t, d.Decode(&got))
	require.False(t, d.More())
	require.Positive(t, got["seconds"])
	require.Positive(t, got["rate"])
	delete(got, "seconds")
	delete(got, "rate")
	zero := 0.0
	require.Equal(t, map[string]any{
		"accepted": 2.0, "answered": 2.0, "failed": zero, "not_sent": zero, "maybe": zero, "corrupt": zero, "lines": 3.0, "first_open": zero,
		"earlier": zero, "once": zero, "known": zero,
		"lost": zero, "duplicated": zero, "interrupted": false, "exit": zero,
		"targets": []any{map[string]any{
			"name": "embedded:", "accepted": 2.0, "answered": 2.0, "failed": zero, "not_sent": zero, "maybe": zero, "once": zero, "known": zero,
		}},
		"verify": map[string]any{"lost": zero, "duplicated": zero, "excess": zero, "landed": zero, "before": zero, "resent": zero, "unsent": zero, "strange": zero},
	}, got)
	require.Regexp(t, accountLine, lastLine(errs))

	_, out, _ = jobsub("a\n", "submit", "--to", "embedded:", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Nil(t, got["lost"], "not verified is null, not 0")
	require.Nil(t, got["verify"])
}

// A producer that may only write could not use jobsub, which wanted to know where the stream stood before it sent.
func TestAUserWhoMayOnlyWriteCanSubmitButNotVerify(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	s.Text("ACL", "SETUSER", "writer", "on", ">secret", "~jobs", "+xadd", "+rpush")
	for _, at := range []string{"/0?stream=jobs", "/0?list=jobs"} {
		to := "redis://writer:secret@" + s.Addr() + at
		s.Text("DEL", "jobs")
		code, out, errs := jobsub("a\nb\n", "submit", "--to", to)
		require.Zero(t, code, errs)
		require.Contains(t, out, "account: accepted=2 answered=2 ")
		for _, args := range [][]string{
			{"--verify", "-"},
			{"--resume", filepath.Join(t.TempDir(), "state"), file(t, "c\n")},
		} {
			code, out, errs = jobsub("c\n", append([]string{"submit", "--to", to}, args...)...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, out, "account: accepted=0 ")
			require.Contains(t, errs, "NOPERM")
		}
		code, out, errs = jobsub("c\n", "submit", "--to", strings.ReplaceAll(to, "=jobs", "=others"))
		require.Equal(t, exitFailed, code)
		require.Contains(t, out, "answered=1 ")
		require.Contains(t, errs, "1 refused: redis: NOPERM ")
	}
}

func TestRefusedJobsAreFailedReportedAndExitOne(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	s.Text("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-xadd")
	report := filepath.Join(t.TempDir(), "report")
	in := file(t, "{\"id\":\"first\",\"payload\":1}\n\n{\"payload\":2}\n")
	code, out, errs := jobsub("", "submit", "--to", "redis://reader:secret@"+s.Addr(), "--report", report, in)
	require.Equal(t, 1, code)
	require.Contains(t, out, "account: accepted=2 answered=2 not_sent=0 maybe=0 ")
	require.Contains(t, errs, "failed=2")
	require.Contains(t, errs, "jobsub: 1 refused: redis: NOPERM ", "the reason of each, once")
	require.Contains(t, errs, "the first line that is not done is 1; --from-line 1 begins there")
	require.NotContains(t, out+errs, "secret")
	require.Zero(t, s.Int("SCARD", "jobs:ids"), "an id is not remembered when its job was refused")

	b, err := os.ReadFile(report)
	require.NoError(t, err)
	var notes []submit.Note
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var n submit.Note
		require.NoError(t, d.Decode(&n))
		require.Regexp(t, "NOPERM|can't run this command", n.Error, "the second is how a script says it")
		n.Error = ""
		notes = append(notes, n)
	}
	require.Equal(t, []submit.Note{
		{Line: 1, ID: "first", Fate: "answered"},
		{Line: 3, ID: "jobs.txt:3", Fate: "answered"},
	}, notes)
}

func TestAServerThatGoesAwayForGoodEndsTheRun(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	pr, pw, err := os.Pipe()
	require.NoError(t, err)
	type result struct {
		code      int
		out, errs string
	}
	ended := make(chan result, 1)
	go func() {
		var o, e bytes.Buffer
		code := run([]string{"submit", "--to", "redis://" + s.Addr(), "--max-outage", "200ms"}, std{pr, &o, &e})
		ended <- result{code, o.String(), e.String()}
	}()
	_, err = fmt.Fprintln(pw, "one")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Int("XLEN", "jobs") == 1 }, testWait, testPoll)
	s.Kill9()
	// Jobs come in until the run has ended, which closes the pipe.
	for err == nil {
		_, err = fmt.Fprintln(pw, "more")
	}
	r := <-ended
	require.NoError(t, pw.Close())
	require.Equal(t, 1, r.code)
	require.Contains(t, r.errs, "gave up: no usable connection")
	require.Contains(t, r.errs, "--from-line")
	require.Regexp(t, accountLine, lastLine(r.out))
}

func TestTheDemoReadsBackEveryJob(t *testing.T) {
	root := t.TempDir()
	for i := range 7 {
		dir := filepath.Join(root, fmt.Sprint("d", i%2))
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), bytes.Repeat([]byte("x"), i*100), 0o600))
	}
	code, out, errs := jobsub("", "demo", "--jobs", "5000", "--root", root)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "7 files below "+root+" become 5000 jobs for embedded:")
	require.Contains(t, out, "account: accepted=5000 answered=5000 not_sent=0 maybe=0 lost=0 duplicated=0 ")

	code, _, errs = jobsub("", "demo", "--jobs", "0")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "--jobs is 0")
	code, _, errs = jobsub("", "demo", "--root", filepath.Join(root, "none"))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no such file")
}

func TestHelpIsEnoughToBeginWith(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"help"}, []string{"TARGETS", "?stream=NAME", "?list=NAME", "beanstalk://host:port/TUBE", "EXIT CODES", "bench", "submit"}},
		{[]string{"submit", "--help"}, []string{"INPUT", "ONCE OR TWICE", "RESUME", "ACCOUNT", "Exit codes: 0", "--max-line", "Examples:", "NAME:ids"}},
		{[]string{"bench", "--help"}, []string{"The jobs stay in the target", "--with-ids", "Examples:"}},
		{[]string{"demo", "--help"}, []string{"--jobs", "GOROOT"}},
	} {
		code, out, _ := jobsub("", tc.args...)
		require.Zero(t, code)
		for _, want := range tc.want {
			require.Contains(t, out, want, "%v", tc.args)
		}
	}
}

func TestTheManualNamesEveryOptionAndNoOther(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/JOBSUB.md")
	require.NoError(t, err)
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	known := map[string]bool{"--appendonly": true, "--appendfsync": true} // the server's
	for _, command := range []string{"submit", "bench", "demo"} {
		_, help, _ := jobsub("", command, "--help")
		for _, f := range flag.FindAllString(help[strings.Index(help, "Flags:"):], -1) {
			known[f] = true
			require.True(t, f == "--help" || f == "--root" || bytes.Contains(manual, []byte(f)), "%s is not in the manual", f)
		}
	}
	for _, f := range flag.FindAllString(string(manual), -1) {
		require.True(t, known[f], "the manual names %s", f)
	}
}
