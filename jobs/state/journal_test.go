package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

var origin = Origin{
	Settings: map[string]string{"format": "auto", "queue": "default"},
	Targets:  []Place{{Name: "redis://h:1/0?stream=a", Mark: "5-0"}, {Name: "beanstalk://h:2/t"}},
}

func begin(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Start(origin))
	return j
}

// filled writes a journal of several flushes and returns its path.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	j := begin(t, path)
	j.Sending(10, 0xabc)
	require.NoError(t, j.Flush())
	j.Acked(1, 4)
	j.Acked(6, 6)
	j.Known(6)
	j.Free(5)
	j.Sending(20, 0xdef)
	require.NoError(t, j.Flush())
	j.Again(5)
	j.Twice(9)
	j.Allow(3)
	j.Sending(15, 0x1) // announced before
	require.NoError(t, j.Flush())
	j.Acked(5, 5)
	j.Free(7)
	require.NoError(t, j.Close())
	return path
}

func TestWhatWasFlushedIsThereAgain(t *testing.T) {
	path := filled(t)
	p, err := Load(path)
	require.NoError(t, err)
	require.False(t, p.Fresh)
	require.Equal(t, origin, p.Origin)
	require.Equal(t, "5-0", p.Mark("redis://h:1/0?stream=a"))
	require.Empty(t, p.Mark("another"))
	require.EqualValues(t, 20, p.Sent)
	require.EqualValues(t, 0xdef, p.Hash)
	require.Equal(t, []Range{{1, 6}}, p.Acked.Ranges())
	require.Equal(t, []Range{{6, 6}}, p.Known.Ranges())
	require.Equal(t, []Range{{7, 7}}, p.Free.Ranges())
	for n, doubt := range map[int64]bool{1: false, 5: false, 7: false, 8: true, 20: true, 21: false} {
		require.Equal(t, doubt, p.Doubt(n), "line %d", n)
	}
	require.EqualValues(t, 13, p.Doubts())
	require.Equal(t, []Range{{9, 9}}, p.Twice.Ranges())
	require.EqualValues(t, 3, p.Again)

	j := begin(t, path)
	j.Allow(2)
	require.NoError(t, j.Flush())
	j.Allow(4)
	require.NoError(t, j.Close())
	p, err = Load(path)
	require.NoError(t, err)
	require.EqualValues(t, 4, p.Again, "the most that a run allowed")
}

func TestLinesInDoubtAreCountedOnceEach(t *testing.T) {
	p := &Past{Sent: 10}
	require.EqualValues(t, 10, p.Doubts())
	p.Acked.Add(1, 4)
	p.Free.Add(3, 6)
	p.Acked.Add(9, 30)
	require.EqualValues(t, 2, p.Doubts())
	for n, doubt := range map[int64]bool{6: false, 7: true, 8: true, 9: false} {
		require.Equal(t, doubt, p.Doubt(n))
	}
	require.Zero(t, new(Past).Doubts())
}

func TestAFileThatEndsAtAnyByteCountsUpToItsLastWholeLine(t *testing.T) {
	whole, err := os.ReadFile(filled(t))
	require.NoError(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for n := range len(whole) + 1 {
		path := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
		if n%7 > 0 && n > 0 && whole[n-1] != '\n' && (n == len(whole) || whole[n] != '\n') {
			continue // around the ends of lines each byte is tried
		}
		kept := 0
		for _, l := range lines {
			if kept+len(l) > n {
				break
			}
			kept += len(l)
		}
		want, _, err := parse("", whole[:kept])
		require.NoError(t, err)

		j := begin(t, path)
		require.Equal(t, want, j.Past(), "%d bytes", n)
		j.Sending(99, 7)
		require.NoError(t, j.Close())
		got, err := Load(path)
		require.NoError(t, err, "what is appended to a torn file is read again")
		require.EqualValues(t, 99, got.Sent)
		require.Equal(t, want.Acked, got.Acked)
	}
}

func TestALastLineWithHolesDoesNotCountAndAnEarlierOneIsDamage(t *testing.T) {
	path := filled(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1

	torn := bytes.Clone(whole)
	torn[last] = 0
	require.NoError(t, os.WriteFile(path, torn, 0o600))
	p, err := Load(path)
	require.NoError(t, err)
	require.True(t, p.Doubt(7), "the note about it is gone")

	for at := range last - 1 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1
		_, _, err := parse("file", damaged)
		require.Error(t, err, "byte %d", at)
	}
}

func TestAnotherFileIsRefusedAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.txt")
	for _, content := range []string{"a job\n", "j", "jobsub-state 2 {}\n", magic + "{}\n"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		j, err := Open(path)
		if err == nil { // the start of a file of ours
			require.Equal(t, "j", content)
			require.NoError(t, j.Close())
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}
	_, err := Open(path)
	require.ErrorContains(t, err, "damaged in line 1")
	require.NoError(t, os.WriteFile(path, []byte("a job\n"), 0o600))
	_, err = Open(path)
	require.ErrorContains(t, err, "is no state file")
}

func TestAllThatDiffersFromTheEarlierRunIsToldAtOnce(t *testing.T) {
	path := filled(t)
	j, err := Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	err = j.Start(Origin{Settings: map[string]string{"format": "lines", "ids": "never", "queue": "default"}, Targets: origin.Targets[:1]})
	require.ErrorContains(t, err, `begun with format "auto", this run has "lines"`)
	require.ErrorContains(t, err, `begun with ids "", this run has "never"`)
	require.ErrorContains(t, err, "this run has redis://h:1/0?stream=a")
	require.NotContains(t, err.Error(), "queue")
}

func TestAStateFileIsUsedByOneAtATime(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not locked there")
	}
	path := filepath.Join(t.TempDir(), "state")
	j := begin(t, path)
	_, err := Open(path)
	require.ErrorIs(t, err, ErrBusy)
	_, err = Load(path)
	require.NoError(t, err, "looking is allowed")
	require.NoError(t, j.Close())
	j = begin(t, path)
	require.NoError(t, j.Close())
}

func TestNothingCountsAsFlushedWhenTheDiskFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	j := begin(t, path)
	j.Sending(5, 1)
	good := j.f
	full, err := os.Open(path) // not open for writing: each write fails
	require.NoError(t, err)
	j.f = full
	require.ErrorContains(t, j.Flush(), "state file")
	require.NoError(t, full.Close())
	j.f = good
	if j.broken == nil {
		t.Fatal("no mark that the end of the file is unknown")
	}
	require.True(t, errors.Is(j.Flush(), j.broken), "and stays so")
	require.Error(t, j.Close())
	p, err := Load(path)
	require.NoError(t, err)
	require.Zero(t, p.Sent)
}
