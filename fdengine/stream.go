package fdengine

import (
	"context"
	"slices"
	"sync"

	"github.com/fdengine/fullduplex/carry"
)

// Stream is an ordered series of commands on one engine: nothing of it is executed after a gap. When a command of
// it fails (its error is not the server's answer), all later ones fail too and are not sent, until Reset; a command
// whose caller withdrew before it was sent is no failure. A refusal that may go again holds the stream back until
// the answers behind it are in. Safe for concurrent use; the order is then the order of admission.
type Stream struct {
	e   *Engine
	log carry.Stream[entry]
	mu  struct {
		sync.Mutex
		open   int // submitted and not settled
		closed bool
		empty  []chan struct{} // Flushes that wait for open to become 0
	}
}

// Stream returns a new ordered series. It costs nothing while unused and needs no Close.
func (e *Engine) Stream() *Stream {
	s := &Stream{e: e}
	s.log.Owner = s
	return s
}

// Do is Engine.Do in the order of the stream.
func (s *Stream) Do(ctx context.Context, cmd Command) error {
	if err := s.enter(1); err != nil {
		return s.e.reject(err)
	}
	accepted := false
	defer func() { // also when the command's own code ends this goroutine
		if !accepted {
			s.leave(1)
		}
	}()
	var err error
	accepted, err = s.e.do(ctx, cmd, &s.log)
	return err
}

// Submit is Engine.Submit in the order of the stream.
func (s *Stream) Submit(ctx context.Context, cmd Command, done Completion) error {
	return s.submit(ctx, cmd, done, false)
}

// TrySubmit is Engine.TrySubmit in the order of the stream.
func (s *Stream) TrySubmit(cmd Command, done Completion) error {
	return s.submit(context.Background(), cmd, done, true)
}

func (s *Stream) submit(ctx context.Context, cmd Command, done Completion, try bool) error {
	if err := s.enter(1); err != nil {
		return s.e.reject(err)
	}
	accepted := false
	defer func() {
		if !accepted {
			s.leave(1)
		}
	}()
	err := s.e.submit(ctx, cmd, done, &s.log, try)
	accepted = err == nil
	return err
}

// Flush waits until nothing of the stream is under way, or ctx ends; who keeps submitting meanwhile keeps it waiting. It returns ErrStreamBroken when the
// stream is broken then.
func (s *Stream) Flush(ctx context.Context) error {
	s.mu.Lock()
	if s.mu.open > 0 {
		done := make(chan struct{})
		s.mu.empty = append(s.mu.empty, done)
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			s.mu.Lock()
			s.mu.empty = slices.DeleteFunc(s.mu.empty, func(c chan struct{}) bool { return c == done })
			s.mu.Unlock()
			return ctx.Err()
		}
	} else {
		s.mu.Unlock()
	}
	l := &s.e.log
	l.Lock()
	defer l.Unlock()
	if s.log.Broken() {
		return ErrStreamBroken
	}
	return nil
}

// Reset makes a broken stream usable again: what was under way when it broke has failed, what comes now starts
// after the gap. It returns ErrClosed when the engine takes nothing any more.
func (s *Stream) Reset() error {
	l := &s.e.log
	l.Lock()
	defer l.Unlock()
	if s.e.stopping || s.e.state == stateClosed {
		return s.e.closedClass()
	}
	s.log.Reset()
	return nil
}

// Close ends the stream: later submissions return ErrClosed. It waits for nothing; use Flush before it.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	return nil
}

// enter counts n more commands under way.
func (s *Stream) enter(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return notSent(ErrClosed, nil)
	}
	s.mu.open += n
	return nil
}

// leave counts n out.
func (s *Stream) leave(n int) {
	s.mu.Lock()
	s.mu.open -= n
	var empty []chan struct{}
	if s.mu.open == 0 {
		empty, s.mu.empty = s.mu.empty, nil
	}
	s.mu.Unlock()
	for _, c := range empty {
		close(c)
	}
}

// streamDone counts a settled record out of its stream.
func streamDone(s *carry.Stream[entry]) {
	if s != nil {
		s.Owner.(*Stream).leave(1)
	}
}
