// Package state keeps a file that says which lines of an input have been dealt with, so that a run which was ended
// at any moment, also by a kill -9 or a power cut, can be gone on with. It knows line numbers, ranges and fsync; it
// does not know what a job is, where jobs go, or what is to be done with a line in doubt.
//
// The file is a journal: lines of text that are appended and synced. Before a line of the input may be sent, the
// journal says that it may be; afterwards it says what became of it. So whatever the moment, a line is known to be
// taken, known not to be, never sent, or in doubt.
package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Journal is an open state file. One goroutine at a time; Flush and Close block for the disk.
type Journal struct {
	path   string
	f      *os.File
	past   *Past
	size   int64 // of what is whole
	next   record
	sent   int64 // as announced, flushed or not
	broken error // the file cannot be written any more
}

// ErrBusy: another process has the state file open.
var ErrBusy = errors.New("state file is in use by another process")

// Open opens or creates a state file and takes hold of it until Close. The error says when it is in use, damaged,
// or no state file; then it was not changed.
func Open(path string) (_ *Journal, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := lock(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	past, whole, err := parse(path, b)
	if err != nil {
		return nil, err
	}
	return &Journal{path: path, f: f, past: past, size: whole, sent: past.Sent}, nil
}

// Past is what earlier runs left.
func (j *Journal) Past() *Past { return j.past }

// Start begins the file of a first run with o, or checks that a later one has the same origin. Nothing may be
// noted before it.
func (j *Journal) Start(o Origin) error {
	if err := j.past.Matches(j.path, o); err != nil {
		return err
	}
	// What a torn write left is cut off, so that the next line begins where a line begins.
	if err := j.f.Truncate(j.size); err != nil {
		return err
	}
	if !j.past.Fresh {
		return nil
	}
	b, err := encodeOrigin(o)
	if err != nil {
		return err
	}
	if err := j.append(b); err != nil {
		return err
	}
	return syncDir(filepath.Dir(j.path))
}

// Sending announces that lines up to this one may be sent; hash is that of the input so far. Lines that were
// announced before are left as they are.
func (j *Journal) Sending(line int64, hash uint64) {
	if line > j.sent {
		j.sent = line
		j.next.sent, j.next.hash = line, hash
	}
}

// Again announces that a line which was certainly not taken before may be sent again.
func (j *Journal) Again(line int64) { j.next.tried.Add(line, line) }

// Twice announces that a line in doubt is sent again.
func (j *Journal) Twice(line int64) { j.next.twice.Add(line, line) }

// Allow announces that a job which may have been taken is sent up to n more times from now on.
func (j *Journal) Allow(n int64) {
	if n > j.past.Again {
		j.next.again = n
	}
}

// Acked notes that the lines first to last need nothing more.
func (j *Journal) Acked(first, last int64) { j.next.acked.Add(first, last) }

// Known notes that an acknowledged line was known to the target already.
func (j *Journal) Known(line int64) { j.next.known.Add(line, line) }

// Free notes that a line which was announced is certainly not taken.
func (j *Journal) Free(line int64) { j.next.free.Add(line, line) }

// Flush writes and syncs what was announced and noted since the last one. After an error nothing may be sent that
// was announced since; what was noted is written by the next Flush, if that succeeds.
func (j *Journal) Flush() error {
	if j.next.empty() {
		return nil
	}
	if err := j.append(j.next.encode()); err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	j.next.reset()
	return nil
}

// append writes b behind the whole lines and syncs. A part that was written is cut off again.
func (j *Journal) append(b []byte) error {
	if j.broken != nil {
		return j.broken
	}
	_, err := j.f.WriteAt(b, j.size)
	if err == nil {
		if err = j.f.Sync(); err != nil {
			j.broken = err // what is on the disk is not known any more
			return err
		}
		j.size += int64(len(b))
		return nil
	}
	if e := j.f.Truncate(j.size); e != nil {
		j.broken = errors.Join(err, e)
	}
	return err
}

// Close flushes and lets go of the file.
func (j *Journal) Close() error { return errors.Join(j.Flush(), j.f.Close()) }

// syncDir makes the name of a new file last.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
