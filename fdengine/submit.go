package fdengine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// Do sends cmd and waits for its outcome. The ctx bounds the whole call: cancelled before the request was
// published it is never sent (NotSent); after that Do returns at once with MaybeExecuted and the reply is dropped
// when it comes. Either way the error matches ctx.Err() under errors.Is, and the engine is done with cmd. Safe for
// concurrent use; blocks while the queue is full, in the order of the callers.
func (e *Engine) Do(ctx context.Context, cmd Command) error {
	_, err := e.do(ctx, cmd, nil)
	return err
}

func (e *Engine) do(ctx context.Context, cmd Command, s *carry.Stream[entry]) (accepted bool, err error) {
	c := e.calls.Get().(*call)
	solo, err := e.launch(ctx, cmd, c, s)
	if err != nil {
		e.release(c)
		return false, e.reject(err)
	}
	if solo != nil {
		c.solo = true
		solo.goSolo()
	}
	if done := ctx.Done(); done == nil {
		c.wait()
	} else {
		select {
		case <-c.ready:
			c.pass()
		case <-done:
			if w := c.ticket.Withdraw(); w.Won {
				return true, e.withdrawn(c.start, s, w, ctx.Err())
			}
			c.wait()
			c.err = leftBy(c.err, ctx.Err())
		}
	}
	err = c.err
	if ctx.Done() == nil || c.clean && c.ticket.Reusable() {
		e.release(c)
	}
	return true, err
}

// launch prepares and admits the command of c. It is apart from do so that the caller waits on a shallow stack.
// solo: the caller is to write and read for itself, see solo.go.
func (e *Engine) launch(ctx context.Context, cmd Command, c *call, s *carry.Stream[entry]) (solo *session, err error) {
	d := e.drafts.Get().(*draft)
	if err = e.prepare(ctx, cmd, d); err == nil {
		d.rec.Owner, d.rec.Stream = entry{cmd, c}, s
		c.plain = ctx.Done() == nil
		if !c.plain { // else nobody can withdraw it
			d.rec.Attach(&c.ticket)
		}
		d.solo = c.plain && e.soloAfter > 0
		if d.solo {
			e.lookFirst()
		}
		solo, err = e.admit(ctx, d, false)
		c.start = d.rec.Start
	}
	e.discard(d)
	return solo, err
}

// Submit queues cmd and returns; done is told the outcome, once, unless Submit returns an error (then nothing was
// queued, fate NotSent). ctx bounds the wait for room; a deadline of ctx becomes the settle-by time of the
// command. The request bytes are copied before Submit returns; cmd belongs to the engine until done is told.
func (e *Engine) Submit(ctx context.Context, cmd Command, done Completion) error {
	return e.submit(ctx, cmd, done, nil, false)
}

// TrySubmit is Submit that never blocks: without room it returns ErrQueueFull, NotSent. It is the one form of
// submitting that is allowed inside Complete.
func (e *Engine) TrySubmit(cmd Command, done Completion) error {
	return e.submit(context.Background(), cmd, done, nil, true)
}

func (e *Engine) submit(ctx context.Context, cmd Command, done Completion, s *carry.Stream[entry], try bool) error {
	if err := complains(done); err != nil {
		return e.reject(notSent(nil, err))
	}
	d := e.drafts.Get().(*draft)
	err := e.prepare(ctx, cmd, d)
	if err == nil {
		d.rec.Owner, d.rec.Stream = entry{cmd, done}, s
		d.rec.SettleBy = e.settleBy(ctx)
		_, err = e.admit(ctx, d, try)
	}
	e.discard(d)
	if err != nil {
		return e.reject(err)
	}
	return nil
}

// settleBy is the deadline of ctx on the engine's clock; 0 = it has none.
func (e *Engine) settleBy(ctx context.Context) int64 {
	if at, ok := ctx.Deadline(); ok {
		return max(int64(at.Sub(e.base)), 1)
	}
	return 0
}

// complains says why nobody can be told by done; nil when somebody can.
func complains(done Completion) error {
	if done == nil {
		return errNoCompletion
	}
	if g, is := done.(*Group); is && (g == nil || g.ready == nil) {
		return errNoGroup
	}
	return nil
}

var (
	errNoCompletion = errors.New("fdengine: the completion is nil")
	errNoCommand    = errors.New("fdengine: the command is nil")
	errEmpty        = errors.New("fdengine: the encoded request is empty")
)

// prepare runs the caller's side into d: ctx, gate, spec and encoder, which writes into
// d.enc. No lock is held and nothing is queued; its errors are CallErrors with fate NotSent.
func (e *Engine) prepare(ctx context.Context, cmd Command, d *draft) error {
	if cmd == nil {
		return notSent(nil, errNoCommand)
	}
	if ctx.Done() != nil && ctx.Err() != nil {
		return notSent(nil, ctx.Err())
	}
	if e.opt.Gate != nil {
		if err := panics.Catch("Gate", func() error { return e.opt.Gate(ctx, cmd) }); err != nil {
			return notSent(nil, err)
		}
	}
	d.cmd = cmd
	switch err := panics.Catch("AppendRequest", d.encode); {
	case err != nil:
		return notSent(nil, err)
	case len(d.enc) == 0:
		return notSent(nil, errEmpty)
	case len(d.enc) > e.opt.MaxRequest:
		return notSent(ErrTooLarge, fmt.Errorf("request of %d bytes, limit %d", len(d.enc), e.opt.MaxRequest))
	}
	if err := d.spec.fill(d.rec, e.opt.Budget); err != nil {
		return notSent(nil, err)
	}
	return nil
}

// fill checks s and writes it into r.
func (s *Spec) fill(r *carry.Record[entry], budget int) error {
	frames := s.Frames
	switch {
	case frames == 0:
		frames = 1
	case frames == NoReply:
		frames = 0
	}
	switch {
	case frames < 0 || frames > 65535:
		return fmt.Errorf("fdengine: Spec.Frames is %d, must be NoReply or 0 to 65535", s.Frames)
	case s.Skip < 0 || s.Skip > 0 && s.Skip >= frames:
		return fmt.Errorf("fdengine: Spec.Skip is %d, must be less than the %d frames", s.Skip, frames)
	case s.Class > carry.Replay:
		return fmt.Errorf("fdengine: Spec.Class is %d, must be NoRetry or Replay", s.Class)
	}
	if s.Budget != 0 {
		budget = min(max(s.Budget, 0), maxBudget)
	}
	switch {
	case s.Block < 0:
		r.Block = carry.BlockForever
	case s.Block > 0:
		r.Block = uint32(min(s.Block.Milliseconds()+1, int64(carry.BlockForever-1)))
	}
	r.Class, r.Route, r.Opaque = s.Class, s.Route, s.Opaque
	r.Budget, r.Frames, r.Skip = uint16(budget), uint16(frames), uint16(s.Skip)
	return nil
}

// admit appends the request of d when there is room, or waits for it (try: does not). A session is returned to a
// caller who is to go solo.
func (e *Engine) admit(ctx context.Context, d *draft, try bool) (*session, error) {
	l := &e.log
	l.Lock()
	if err := e.refuses(d.rec.Stream); err != nil {
		l.Unlock()
		return nil, err
	}
	if e.room.first != nil || !e.fits(1, len(d.enc)) {
		if try {
			l.Unlock()
			return nil, notSent(ErrQueueFull, nil)
		}
		if err := e.makeRoom(ctx, d.rec.Stream, 1, len(d.enc)); err != nil {
			l.Unlock()
			return nil, err
		}
	}
	if d.kept = e.append(d.rec, d.enc, d.spec.Timeout); d.kept {
		d.spare = l.Spare()
	}
	e.narrow()
	if d.solo {
		if s, ok := e.seize(d.rec); ok {
			l.Unlock()
			return s, nil
		}
	}
	wake := e.parked && e.due() && e.unpark()
	l.Unlock()
	if wake {
		e.signal()
	}
	return nil, nil
}

// makeRoom waits until n requests of size bytes may enter, for s. Called with the lock held, returns with it held.
func (e *Engine) makeRoom(ctx context.Context, s *carry.Stream[entry], n, size int) error {
	if err := e.reserve(ctx, n, size); err != nil {
		return notSent(nil, err)
	}
	e.spend(n, size)
	err := e.refuses(s)
	if err != nil {
		e.letIn()
	}
	return err
}

// refuses says why nothing may be accepted now; nil when it may. Under the lock.
func (e *Engine) refuses(s *carry.Stream[entry]) error {
	switch {
	case e.stopping || e.state == stateClosed:
		return notSent(e.closedClass(), nil)
	case s != nil && s.Broken():
		return notSent(ErrStreamBroken, nil)
	}
	return nil
}

// maxSpan is the longest settle-by time; a longer one is none.
const maxSpan = 100 * 365 * 24 * time.Hour

// append puts r at the end of the log, submitted now; narrow must follow. Under the lock. In the usual case it writes nothing into r before
// the log has copied it: the copy would wait for that.
func (e *Engine) append(r *carry.Record[entry], enc []byte, timeout time.Duration) (kept bool) {
	start := e.rouse()
	if timeout > 0 && timeout < maxSpan {
		// The clock may be a tick old: never early.
		if at := start + int64(timeout) + int64(tick); r.SettleBy == 0 || at < r.SettleBy {
			r.SettleBy = at
		}
	}
	if r.SettleBy != 0 && r.SettleBy < e.nextSettle {
		e.nextSettle = r.SettleBy
	}
	e.count.Accepted++
	kept = e.log.AppendAt(r, enc, start)
	r.Start = start
	return kept
}

// withdrawn ends a call whose caller left.
func (e *Engine) withdrawn(start int64, s *carry.Stream[entry], w carry.Withdrawal, cause error) error {
	err := &CallError{Fate: w.Fate, Sends: w.Sends, Cause: cause}
	var broken []carry.End[entry]
	e.log.Lock()
	e.settled(w.Fate)
	if w.Broke {
		broken = e.settleAll(func(*carry.Record[entry]) bool { return false })
	}
	if !w.Flying {
		e.prune = true // if it was away, its room comes back with the next sweep
		e.rouse()
	}
	lent := e.sess
	cut := w.Flying && e.opt.CutOnCancel && lent != nil && lent.from < w.At && lent.cutLocked(errLeft)
	e.letIn()
	e.log.Unlock()
	if cut {
		_ = lent.conn.Abort()
		e.signal()
	}
	e.detach(broken, nil, nil)
	streamDone(s)
	e.sample(start, w.Fate, w.Sends, err)
	return err
}

// reject counts and returns the error of a call that left no trace.
func (e *Engine) reject(err error) error {
	e.rejected.Add(1)
	return err
}

// leftBy puts the ctx error into the outcome of a call that left while the reader was at work on it.
func leftBy(err, cause error) error {
	var ce *CallError
	if errors.As(err, &ce) && ce.Cause == errLeft {
		return &CallError{Fate: ce.Fate, Sends: ce.Sends, Cause: cause}
	}
	return err
}

func notSent(class, cause error) error {
	return &CallError{Fate: carry.NotSent, Class: class, Cause: cause}
}
