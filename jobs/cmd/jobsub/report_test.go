package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// --report emptied the file it named before anything else: the input, when it was the same.
func TestAReportIsNotWrittenOverTheInputOrTheStateFile(t *testing.T) {
	dir := t.TempDir()
	input, state, link := filepath.Join(dir, "in"), filepath.Join(dir, "state"), filepath.Join(dir, "link")
	for _, name := range []string{input, state} {
		require.NoError(t, os.WriteFile(name, []byte("keep\n"), 0o600))
	}
	require.NoError(t, os.Link(input, link))
	for _, report := range []string{input, state, link} {
		w := &work{flags: flags{report: report}, input: input, resume: state}
		require.ErrorContains(t, w.reportApart(), "written over", report)
	}
	for _, report := range []string{"", filepath.Join(dir, "other")} {
		w := &work{flags: flags{report: report}, input: input, resume: state}
		require.NoError(t, w.reportApart())
	}
}

// A state file that the run itself had made was not seen to be the report: the report emptied it, and the next run could
// not go on. Nor was an empty input seen to be the state file.
func TestAReportIsNotWrittenOverAStateFileThatIsNew(t *testing.T) {
	dir := t.TempDir()
	input, state, link := filepath.Join(dir, "in"), filepath.Join(dir, "state"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(input, []byte("a\n"), 0o600))
	require.NoError(t, os.Symlink(state, link))
	submit := []string{"submit", "--quiet", "--to", "beanstalk://127.0.0.1:1/t", "--max-outage", "1ms", "--resume", state}
	for _, report := range []string{state, filepath.Join(dir, ".") + "//state", link} {
		require.NoError(t, os.RemoveAll(state))
		code, out, errs := jobsub("", append(submit, "--report", report, input)...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, errs, "written over "+state)
		require.Contains(t, out, "account: accepted=0 ")
	}
	require.NoError(t, os.WriteFile(state, nil, 0o600))
	code, _, errs := jobsub("", append(submit, state)...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "that is the input")
}

// A run that never began left an empty report in the place of the last one's.
func TestAReportIsCreatedOnlyWhenAskedTo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report")
	require.NoError(t, os.WriteFile(name, []byte("old\n"), 0o600))
	late := &lateFile{name: name}
	require.NoError(t, late.Close())
	kept, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "old\n", string(kept))
	require.NoError(t, late.create())
	_, err = late.Write([]byte("new\n"))
	require.NoError(t, err)
	require.NoError(t, late.Close())
	now, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "new\n", string(now))
}
