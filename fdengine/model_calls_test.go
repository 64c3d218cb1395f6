package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
)

// call is one caller's life.
func (w *world) call(i int) {
	own := &lane{name: fmt.Sprintf("caller %d", i)}
	streams := map[int]*lane{}
	w.mu.Lock()
	w.lanes = append(w.lanes, own)
	w.mu.Unlock()
	for _, s := range w.p.callers[i].steps {
		if s.wait > 0 {
			pause(s.wait)
		}
		l := own
		if s.stream >= 0 {
			if l = streams[s.stream]; l == nil {
				l = &lane{name: fmt.Sprintf("stream %d.%d", i, s.stream), stream: w.Stream()}
				streams[s.stream] = l
				w.mu.Lock()
				w.lanes = append(w.lanes, l)
				w.mu.Unlock()
			}
		}
		w.step(i, s, l)
	}
}

func (w *world) step(i int, s step, l *lane) {
	switch s.op {
	case opPause:
	case opPing:
		ctx, cancel, _ := w.context(s.ctx, nil)
		w.count(1)
		if err := w.Ping(ctx); errors.Is(err, fdengine.ErrDenied) {
			w.mu.Lock()
			w.denied -= 1000 // the limiter is obeyed
			w.mu.Unlock()
		}
		cancel()
	case opFlush:
		w.flush(s, l)
	case opReset:
		if err := l.stream.Reset(); err != nil && !errors.Is(err, fdengine.ErrClosed) {
			w.violation(fmt.Sprintf("Reset: %v", err))
		}
		l.epoch++
	case opBatch:
		w.batch(i, s, l)
	case opLot:
		w.lot(i, s, l)
	case opDo:
		r := w.prepare(i, s.cmds[0], s.op, s.ctx)
		l.add(r)
		_ = w.do(r, l.stream)
	case opSubmit, opTry:
		r := w.prepare(i, s.cmds[0], s.op, s.ctx)
		l.add(r)
		w.submit(r, l.stream)
	}
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls += n
}

func (w *world) prepare(caller int, pl *plan, o op, ctx leave) *record {
	r := &record{w: w, plan: pl, caller: caller, op: o, ctx: ctx, asked: w.now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.records = append(w.records, r)
	w.byToken[pl.token] = r
	return r
}

// context makes the context of a call, which ends as how says; ended is told when.
func (w *world) context(how leave, ended func()) (ctx context.Context, cancel func(), leaves func()) {
	ctx = context.Background()
	if how.how == stays {
		return ctx, func() {}, nil
	}
	if how.how == deadline {
		ctx, cancel := context.WithTimeout(ctx, how.at)
		return ctx, cancel, nil
	}
	ctx, stop := context.WithCancel(ctx)
	leaves = func() {
		if ended != nil {
			ended()
		}
		stop()
	}
	switch how.how {
	case goneFirst:
		leaves()
	case cancelled:
		t := time.AfterFunc(how.at, leaves)
		return ctx, func() { t.Stop(); stop() }, leaves
	}
	return ctx, stop, leaves
}

// ended notes when the context of r ended.
func (r *record) ended() {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.left == 0 {
		r.left = max(r.w.now(), 1)
	}
}

func (w *world) do(r *record, s *fdengine.Stream) error {
	ctx, cancel, leaves := w.context(r.ctx, r.ended)
	defer cancel()
	if r.ctx.how == onArrival || r.ctx.how == onDecode {
		r.cancel = leaves
	}
	if r.ctx.how == deadline {
		r.left = max(w.now()+r.ctx.at, 1)
	}
	cmd := newCommand(r)
	var err error
	r.exited = !returns(func() {
		if s != nil {
			err = s.Do(ctx, cmd)
		} else {
			err = w.Do(ctx, cmd)
		}
	})
	if r.exited {
		err = errExited // and the engine may still be at work on the command
	} else {
		of(cmd).release()
	}
	w.tell(r, err)
	return err
}

var errExited = errors.New("the command ended its caller's goroutine")

// returns runs f on a goroutine that it may end, and says whether it has.
func returns(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	return returned
}

func (w *world) submit(r *record, s *fdengine.Stream) {
	ctx, cancel, _ := w.context(r.ctx, nil)
	defer cancel()
	cmd := newCommand(r)
	done, accepted := w.completion(r, cmd)
	var err error
	switch {
	case r.op == opTry && s != nil:
		err = s.TrySubmit(cmd, done)
	case r.op == opTry:
		err = w.TrySubmit(cmd, done)
	case s != nil:
		err = s.Submit(ctx, cmd, done)
	default:
		err = w.Submit(ctx, cmd, done)
	}
	if err == nil {
		accepted()
	}
	w.mu.Lock()
	r.accepted = w.now()
	w.mu.Unlock()
	if err != nil {
		w.mu.Lock()
		r.rejected = true
		w.mu.Unlock()
		of(cmd).release()
		w.tell(r, err)
	}
}

// completion is who is told of r: the world, or, when nothing else is to happen then, for a third of them a Group. accepted is to be
// called when r was.
func (w *world) completion(r *record, cmd fdengine.Command) (done fdengine.Completion, accepted func()) {
	if r.op != opSubmit || r.plan.done != doneTells || r.plan.id%3 != 0 { // a child is a try
		return w, func() {}
	}
	g := fdengine.NewGroup()
	g.Add(1)
	return g, func() {
		w.wg.Go(func() {
			err := g.Wait(context.Background())
			of(cmd).release()
			w.tell(r, err)
		})
	}
}

// try submits a child from inside a completion.
func (w *world) try(caller int, pl *plan) {
	r := w.prepare(caller, pl, opTry, leave{})
	w.submit(r, nil)
}

func (w *world) batch(i int, s step, l *lane) {
	rs := make([]*record, len(s.cmds))
	ended := func() {
		for _, r := range rs {
			r.ended()
		}
	}
	for j, pl := range s.cmds {
		rs[j] = w.prepare(i, pl, opBatch, s.ctx)
		l.add(rs[j])
	}
	ctx, cancel, leaves := w.context(s.ctx, ended)
	defer cancel()
	cmds, errs := make([]fdengine.Command, len(rs)), make([]error, len(rs))
	for j, r := range rs {
		if s.ctx.how == onArrival || s.ctx.how == onDecode {
			r.cancel = leaves
		}
		if s.ctx.how == deadline {
			r.left = max(w.now()+s.ctx.at, 1)
		}
		cmds[j] = newCommand(r)
	}
	first := w.DoBatch(ctx, cmds, errs)
	var want error
	for j, r := range rs {
		of(cmds[j]).release()
		w.tell(r, errs[j])
		if want == nil {
			want = errs[j]
		}
	}
	if first != want {
		w.violation(fmt.Sprintf("DoBatch returned %v, the first error is %v", first, want))
	}
}

// lot submits commands together. What SubmitBatch says it could not queue is told here, and the rest goes on behind it.
func (w *world) lot(i int, s step, l *lane) {
	ctx, cancel, _ := w.context(s.ctx, nil)
	defer cancel()
	rs, cmds := make([]*record, len(s.cmds)), make([]fdengine.Command, len(s.cmds))
	for j, pl := range s.cmds {
		rs[j] = w.prepare(i, pl, opSubmit, s.ctx)
		l.add(rs[j])
		cmds[j] = newCommand(rs[j])
	}
	submit := w.SubmitBatch
	if l.stream != nil {
		submit = l.stream.SubmitBatch
	}
	for from := 0; from < len(cmds); {
		n, err := submit(ctx, cmds[from:], w)
		if n < 0 || from+n > len(cmds) || (err == nil) != (from+n == len(cmds)) {
			w.violation(fmt.Sprintf("SubmitBatch of %d commands queued %d and returned %v", len(cmds)-from, n, err))
			return
		}
		w.mu.Lock()
		for _, r := range rs[from : from+n] {
			r.accepted = w.now()
		}
		if from += n; err != nil {
			rs[from].rejected = true
		}
		w.mu.Unlock()
		if err != nil {
			of(cmds[from]).release()
			w.tell(rs[from], err)
			from++
		}
	}
}

func (w *world) flush(s step, l *lane) {
	ctx, cancel, _ := w.context(s.ctx, nil)
	defer cancel()
	err := l.stream.Flush(ctx)
	if err != nil && !errors.Is(err, fdengine.ErrStreamBroken) && ctx.Err() == nil {
		w.violation(fmt.Sprintf("Flush: %v", err))
	}
}
