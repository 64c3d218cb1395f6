package fdengine

import (
	"context"

	"github.com/fdengine/fullduplex/carry"
)

// SubmitBatch is Submit for several commands in their order, with one completion, and cheaper: they enter the queue
// together, in parcels of at most 1,024 commands or 64 KiB. It returns how many were queued; done is told of those, once each.
// With an error and n < len(cmds), cmds[n] is the command that it is about (fate NotSent), and none behind it was queued: a call with cmds[n+1:]
// goes on there. Some of those may have been encoded by then; the next call encodes them again. Each command stands alone, as with Submit.
//
//	g.Add(len(cmds))
//	if n, err := e.SubmitBatch(ctx, cmds, g); err != nil {
//		g.Add(n - len(cmds)) // the rest is not going to be
//	}
//	err := g.Wait(ctx)
//
// It blocks while there is no room for the next parcel, in the order of the callers. ctx bounds that wait, one that has ended queues
// nothing; a deadline of ctx becomes the settle-by time of the commands. The request bytes are copied before SubmitBatch returns; a command
// that was queued belongs to the engine until done is told, cmds to the caller again at once. Safe for concurrent use.
func (e *Engine) SubmitBatch(ctx context.Context, cmds []Command, done Completion) (n int, err error) {
	if err := complains(done); err != nil {
		return 0, e.reject(notSent(nil, err))
	}
	if err := e.submitBatch(ctx, cmds, done, nil, &n); err != nil {
		return n, e.reject(err)
	}
	return n, nil
}

// submitBatch counts in queued what was queued, also when a command's own code ends this goroutine.
func (e *Engine) submitBatch(ctx context.Context, cmds []Command, done Completion, s *carry.Stream[entry], queued *int) (err error) {
	p := e.parcels.Get().(*parcel)
	p.stream, p.until = s, e.settleBy(ctx)
	for *queued < len(cmds) && err == nil {
		for i := *queued; i < len(cmds) && err == nil && !p.full(); i++ {
			_, err = p.add(ctx, e, cmds[i], done)
		}
		n, refused := e.admitParcel(ctx, p)
		if refused != nil {
			err = refused // of a command before the one that could not be prepared
		}
		*queued += n
		p.clear()
	}
	p.stream, p.until = nil, 0
	e.parcels.Put(p)
	return err
}

// SubmitBatch is Engine.SubmitBatch in the order of the stream.
func (s *Stream) SubmitBatch(ctx context.Context, cmds []Command, done Completion) (n int, err error) {
	if err := complains(done); err != nil {
		return 0, s.e.reject(notSent(nil, err))
	}
	if len(cmds) == 0 {
		return 0, nil
	}
	if err := s.enter(len(cmds)); err != nil {
		return 0, s.e.reject(err)
	}
	defer func() { s.leave(len(cmds) - n) }()
	if err := s.e.submitBatch(ctx, cmds, done, &s.log, &n); err != nil {
		return n, s.e.reject(err)
	}
	return n, nil
}
