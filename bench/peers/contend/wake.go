package contend

import (
	"context"
	"runtime"
	"sync"
)

// wake is what a blocking client cannot avoid: each caller puts itself on a list and parks, and one goroutine takes
// the list and wakes everybody on it.
type wake struct {
	kick chan struct{} // cap 1
	quit chan struct{}
	done chan struct{}
	mu   struct {
		sync.Mutex
		parked  bool
		waiting []*sleeper
	}
}

func openWake(context.Context, Target) (Client, error) {
	w := &wake{kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w, nil
}

func (w *wake) run() {
	defer close(w.done)
	var batch []*sleeper
	for {
		runtime.Gosched() // as a writer does, so that callers gather
		w.mu.Lock()
		batch, w.mu.waiting = w.mu.waiting, batch[:0]
		w.mu.parked = len(batch) == 0
		w.mu.Unlock()
		if len(batch) == 0 {
			select {
			case <-w.kick:
				continue
			case <-w.quit:
				return
			}
		}
		for _, s := range batch {
			if s != nil { // the last of a group
				s.ready <- struct{}{}
			}
		}
	}
}

func (w *wake) add(s *sleeper) {
	w.mu.Lock()
	w.mu.waiting = append(w.mu.waiting, s)
	parked := w.mu.parked
	w.mu.parked = false
	w.mu.Unlock()
	if parked { // so the channel has room
		w.kick <- struct{}{}
	}
}

// Close stops the goroutine that wakes; no caller may be parked.
func (w *wake) Close() error {
	close(w.quit)
	<-w.done
	return nil
}

func (w *wake) Caller(int) Caller { return &sleeper{w, make(chan struct{}, 1)} }

// Batch is one wake for all its commands.
func (w *wake) Batch(i, _ int) Caller { return w.Caller(i) }

type sleeper struct {
	w     *wake
	ready chan struct{} // cap 1
}

func (s *sleeper) Call() error {
	s.w.add(s)
	<-s.ready
	return nil
}

func (w *wake) Stream(window int) (Flow, error) { return &wakeFlow{w, max(2, window/streamGroup)}, nil }

type wakeFlow struct {
	w      *wake
	groups int
}

// Run hands each command over and is woken once per group.
func (f *wakeFlow) Run(more func() bool) (n int64, err error) {
	w, groups := f.w, f.groups
	ready := make(chan struct{}, groups)
	open := 0
	for more() {
		if open == groups {
			<-ready
			open--
		}
		for range streamGroup - 1 {
			w.add(nil)
		}
		w.add(&sleeper{w, ready})
		open++
		n += streamGroup
	}
	for ; open > 0; open-- {
		<-ready
	}
	return n, nil
}
