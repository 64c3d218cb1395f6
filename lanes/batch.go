package lanes

import (
	"context"
	"runtime"
	"sync"

	"github.com/fdengine/fullduplex/fdengine"
)

// batch is the scratch of one DoBatch over several lanes.
type batch struct {
	where []uint8 // by command: its lane, or nowhere
	parts []part  // by lane
	wait  sync.WaitGroup
	ctx   context.Context
	own   []error // the caller's errs, when there are none
}

// nowhere is the lane of a command that was not submitted. Max is below it.
const nowhere = 255

// part is what goes to one lane.
type part struct {
	cmds []fdengine.Command
	errs []error
	run  func() // bound once, so that starting a goroutine allocates nothing
	over bool   // run came to its end
}

func newBatch(s *Lanes) *batch {
	b := &batch{parts: make([]part, len(s.lanes))}
	for i := range b.parts {
		l, p := &s.lanes[i], &b.parts[i]
		p.run = func() {
			defer b.wait.Done()
			l.load.Add(int64(len(p.cmds)))
			defer l.load.Add(-int64(len(p.cmds)))
			_ = l.engine.DoBatch(b.ctx, p.cmds, p.errs) // it is among errs
			p.over = true
		}
	}
	return b
}

// DoBatch is fdengine.Engine.DoBatch, split by lane: each lane gets its commands in the order of cmds, those without
// a key go to one lane together, and DoBatch returns when all are done. errs and the error are in the order of cmds.
// Where more than one lane is concerned, Gate, Spec and AppendRequest of commands for different lanes run at the
// same time, one lane on the caller's goroutine and each of the others on one that lives as long as the call.
func (s *Lanes) DoBatch(ctx context.Context, cmds []fdengine.Command, errs []error) error {
	if len(cmds) == 0 || errs != nil && len(errs) != len(cmds) {
		return s.lanes[0].engine.DoBatch(ctx, cmds, errs)
	}
	b := s.batches.Get().(*batch)
	outs := errs
	if errs == nil {
		b.own = fit(b.own, len(cmds))
		outs = b.own
	}
	if only, ok := s.sort(b, cmds, outs); ok {
		b.clear()
		s.batches.Put(b)
		l := &s.lanes[only]
		l.load.Add(int64(len(cmds)))
		defer l.load.Add(-int64(len(cmds)))
		return l.engine.DoBatch(ctx, cmds, errs)
	}
	b.run(ctx)
	err := b.gather(outs)
	b.clear()
	s.batches.Put(b)
	return err
}

// sort puts each command into the part of its lane. When there is but one lane it says so.
func (s *Lanes) sort(b *batch, cmds []fdengine.Command, errs []error) (only int, ok bool) {
	b.where = b.where[:0]
	keyless := -1
	for i, cmd := range cmds {
		at, keyed, err := s.keyLane(cmd)
		errs[i] = err
		switch {
		case err != nil:
			at = nowhere
		case !keyed:
			if keyless < 0 {
				keyless = s.fewest(0)
			}
			at = keyless
		}
		b.where = append(b.where, uint8(at))
	}
	only, ok = int(b.where[0]), true
	for _, at := range b.where {
		ok = ok && int(at) == only
	}
	if ok && only != nowhere {
		return only, true
	}
	for i, at := range b.where {
		if at != nowhere {
			b.parts[at].cmds = append(b.parts[at].cmds, cmds[i])
		}
	}
	return 0, false
}

// run gives each lane its part and waits for all.
func (b *batch) run(ctx context.Context) {
	b.ctx = ctx
	last := -1
	for i := range b.parts {
		p := &b.parts[i]
		p.over = len(p.cmds) == 0
		p.errs = fit(p.errs, len(p.cmds))
		if p.over {
			continue
		}
		b.wait.Add(1)
		if last >= 0 {
			go b.parts[last].run()
		}
		last = i
	}
	if last >= 0 {
		b.parts[last].run()
	}
	b.wait.Wait()
	for i := range b.parts {
		if !b.parts[i].over {
			// A command's own code ended the goroutine of its part, as it would have ended this one. The engine may
			// still write to that part's errs, so b is not used again.
			runtime.Goexit()
		}
	}
}

// gather brings the outcomes into the order of the commands and returns the first error.
func (b *batch) gather(errs []error) (first error) {
	var next [Max]int
	for i, at := range b.where {
		if at != nowhere {
			errs[i] = b.parts[at].errs[next[at]]
			next[at]++
		}
		if first == nil {
			first = errs[i]
		}
	}
	return first
}

// clear lets go of what belongs to the caller.
func (b *batch) clear() {
	for i := range b.parts {
		p := &b.parts[i]
		clear(p.cmds)
		clear(p.errs)
		p.cmds = p.cmds[:0]
	}
	clear(b.own)
	b.ctx = nil
}

// fit returns s with length n and zero values.
func fit(s []error, n int) []error {
	if cap(s) < n {
		return make([]error, n)
	}
	s = s[:n]
	clear(s)
	return s
}
