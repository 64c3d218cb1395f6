package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/redis"
)

// told is what a caller was told about a command.
type told uint8

const (
	nothing   told = iota
	answered       // it ran, once at least
	refused        // a starting server answered, and did not run it
	maybe          // it may have run
	notSent        // it did not run
	withdrawn      // it did not run, because its caller left before it was sent
)

func (w told) String() string {
	return [...]string{"nothing", "answered", "refused", "maybe", "not sent", "withdrawn"}[w]
}

// whatTold reads an error. A word of the server that only a faulty library could cause is an error of its own.
func whatTold(err error) (told, error) {
	if err == nil {
		return answered, nil
	}
	var se *redis.ServerError
	switch fdengine.FateOf(err) {
	case carry.Answered:
		if errors.As(err, &se) && se.Code == "LOADING" {
			return refused, nil
		}
		return answered, fmt.Errorf("an answer that nothing here can cause: %w", err)
	case carry.NotSent:
		// The cause of an outage may be a deadline as well, of a dial.
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, fdengine.ErrUnavailable) && !errors.Is(err, fdengine.ErrStreamBroken) {
			return withdrawn, nil
		}
		return notSent, nil
	}
	return maybe, nil
}

// series is a row of commands, each of which leaves a token of its own on a server: the name of the series and its
// number in it. One goroutine takes numbers, any may note.
type series struct {
	name   string
	most   int   // how often one may run
	epochs []int // where a Stream began anew; nil: it is no Stream

	mu struct {
		sync.Mutex
		told   []told
		id     []string // that the server gave to the entry or job, where its reply says so
		wrongs []error
	}
}

func newSeries(name string, most int) *series { return &series{name: name, most: most} }

// take makes the next token.
func (s *series) take() (i int, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i = len(s.mu.told)
	s.mu.told, s.mu.id = append(s.mu.told, nothing), append(s.mu.id, "")
	return i, s.name + "#" + strconv.Itoa(i)
}

// note is called once for each token that was taken.
func (s *series) note(i int, id string, err error) told {
	w, wrong := whatTold(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.told[i] != nothing {
		wrong = errors.Join(wrong, fmt.Errorf("told %v after %v", w, s.mu.told[i]))
	}
	s.mu.told[i], s.mu.id[i] = w, id
	if wrong != nil {
		s.mu.wrongs = append(s.mu.wrongs, fmt.Errorf("%s#%d: %w", s.name, i, wrong))
	}
	return w
}

// found is an entry or a job that a server has.
type found struct{ id, token string }

// judge holds what was told against what the server has, in its order. It returns what is wrong, at most ten of it.
func (s *series) judge(has []found) (wrongs []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrongs = s.mu.wrongs
	wrong := func(i int, format string, args ...any) {
		if len(wrongs) < 10 {
			wrongs = append(wrongs, fmt.Errorf("%s#%d (told %v): %s", s.name, i, s.mu.told[i], fmt.Sprintf(format, args...)))
		}
	}
	runs, ids := make([]int, len(s.mu.told)), make(map[string]int, len(has))
	last := -1
	for _, f := range has {
		n, ok := strings.CutPrefix(f.token, s.name+"#")
		i, err := strconv.Atoi(n)
		if !ok || err != nil || i < 0 || i >= len(runs) {
			wrongs = append(wrongs, fmt.Errorf("%s: has the foreign token %q", s.name, f.token))
			continue
		}
		runs[i]++
		ids[f.id] = i
		// In order; what went again began at an earlier place, and left out nothing from there.
		if s.epochs != nil && i > last+1 && s.most > 1 && !s.opens(last, i) {
			wrong(i, "ran after %d, with a gap", last)
		}
		if s.epochs != nil && i < last && s.most == 1 {
			wrong(i, "ran after %d", last)
		}
		last = i
	}
	for i, w := range s.mu.told {
		switch n := runs[i]; {
		case w == nothing:
			wrong(i, "was never settled")
		case w == answered && n == 0:
			wrong(i, "is lost")
		case (w == notSent || w == withdrawn || w == refused) && n > 0:
			wrong(i, "ran %d times", n)
		case n > s.most:
			wrong(i, "ran %d times, %d are allowed", n, s.most)
		}
		if id := s.mu.id[i]; id != "" {
			if of, ok := ids[id]; !ok || of != i {
				wrong(i, "was answered with id %q, which is of %d (%v)", id, of, ok)
			}
		}
	}
	s.gaps(runs, wrong)
	return wrongs
}

// opens reports whether i may follow last although they are no neighbours: an epoch began between them, or all
// between them did not count.
func (s *series) opens(last, i int) bool {
	for k := i; k > last; k-- {
		if s.begins(k) {
			return true
		}
		if k < i && s.mu.told[k] != withdrawn && s.mu.told[k] != refused {
			return false
		}
	}
	return true
}

// begins reports whether an epoch of the Stream begins at i.
func (s *series) begins(i int) bool {
	_, ok := slices.BinarySearch(s.epochs, i)
	return ok
}

// gaps requires of each epoch of a Stream that nothing ran behind a command that did not.
func (s *series) gaps(runs []int, wrong func(int, string, ...any)) {
	gap := -1
	for i, n := range runs {
		switch {
		case s.epochs == nil:
			return
		case s.begins(i):
			gap = -1
		}
		switch w := s.mu.told[i]; {
		case n == 0 && gap < 0 && w != withdrawn && w != refused:
			gap = i
		case n > 0 && gap >= 0:
			wrong(i, "ran behind %d, which did not (told %v)", gap, s.mu.told[gap])
		}
	}
}

// sums is how many were told what.
func (s *series) sums(into *[withdrawn + 1]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.mu.told {
		into[w]++
	}
}
