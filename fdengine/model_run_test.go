package fdengine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

const (
	patience = 20 * time.Second // of a run, until everything is made sound
	mercy    = 90 * time.Second // after that, for everything to settle
)

// result is what a run showed.
type result struct {
	bad     []string
	details string
}

// execute runs p in a bubble and holds the outcome against the promises.
func execute(t *testing.T, p *program) (res result) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(p)
		w.run()
		res.bad = w.judge()
		if len(res.bad) > 0 {
			res.details = w.explain(res.bad)
		}
		if w.hung { // the bubble cannot end
			panic(fmt.Sprintf("program %d:\n%s\n%s\n%s", p.seed, strings.Join(res.bad, "\n"), p.dump(), res.details))
		}
	})
	return res
}

func (w *world) run() {
	callers := make(chan struct{})
	for i := range w.p.callers {
		w.wg.Go(func() { w.call(i) })
	}
	for _, c := range w.p.closing {
		if c.at >= 0 {
			w.wg.Go(func() { pause(c.at); w.close(c) })
		}
	}
	for _, ev := range w.p.events {
		time.AfterFunc(ev.at, func() {
			if !w.calm.Load() {
				ev.do(w)
			}
		})
	}
	stop := make(chan struct{})
	sampled := make(chan struct{})
	go func() { w.sample(stop); close(sampled) }()
	go func() { w.wg.Wait(); close(callers) }()
	limit := patience + w.p.waits()
	if !w.within(callers, limit) {
		w.sound()
		w.server.CloseConns()
		if !w.within(callers, mercy) {
			w.violation("P1: callers hang")
		}
	}
	w.finish(callers)
	close(stop)
	<-sampled
	// What the network still holds may be executed yet: NotSent must stand all the same.
	w.sound()
	pause(2 * time.Second)
	_ = w.server.Close()
	w.leaser.Close()
}

// waits is the longest time that a caller spends between its calls.
func (p *program) waits() (longest time.Duration) {
	for _, c := range p.callers {
		var d time.Duration
		for _, s := range c.steps {
			d += s.wait
		}
		longest = max(longest, d)
	}
	return longest
}

// within waits for done, for d at most.
func (w *world) within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// finish ends the engine.
func (w *world) finish(callers <-chan struct{}) {
	if w.p.heal {
		w.sound()
		pause(3 * time.Second) // a dial that began before may take that long
		if t := w.p.opt.ReadTimeout; t <= 0 {
			w.server.CloseConns() // nothing else ends a silent one soon
		}
		w.healthy()
		if _, err := w.shutdown(mercy); err != nil {
			w.violation(fmt.Sprintf("P10: Shutdown on a sound network: %v", err))
		}
		if w.second != nil {
			ctx, cancel := context.WithTimeout(context.Background(), mercy)
			if _, err := w.second.Shutdown(ctx); err != nil {
				w.violation(fmt.Sprintf("P10: Shutdown of the second engine: %v", err))
			}
			cancel()
		}
	}
	for _, c := range w.p.closing {
		if c.at < 0 {
			w.close(c)
		}
	}
	if w.second != nil {
		_ = w.second.Close()
		<-w.second.Done()
	}
	before := w.now()
	_ = w.Close()
	if w.now() != before {
		w.violation("P10: Close took time")
	}
	if !w.within(w.Done(), 3*time.Second) {
		w.violation("P10: not done after Close")
		w.sound()
	}
	if !w.within(callers, 3*time.Second+w.p.waits()) {
		w.violation("P1: callers hang after Close")
		w.hung = true
	}
	<-w.Done() // behind the last completion
	w.shuts.Wait()
}

func (w *world) close(c closing) {
	if c.shut {
		_, _ = w.shutdown(c.bound)
		return
	}
	before := w.now()
	_ = w.Close()
	if w.now() != before {
		w.violation("P10: Close took time")
	}
}

func (w *world) shutdown(bound time.Duration) (fdengine.Report, error) {
	before := w.now()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	rep, err := w.Shutdown(ctx)
	if took := w.now() - before; took > bound+20*time.Millisecond {
		w.violation(fmt.Sprintf("P10: Shutdown with %v took %v", bound, took))
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		w.violation(fmt.Sprintf("P10: Shutdown returned %v", err))
	}
	return rep, err
}

// healthy sends one more command, which nothing may hinder now.
func (w *world) healthy() {
	for n := range 5 {
		pl := &plan{id: -1 - n, token: fmt.Sprintf("health%d", n), class: carry.Replay, budget: 1000}
		r := w.prepare(0, pl, opDo, leave{how: deadline, at: mercy})
		err := w.do(r, nil)
		if err == nil {
			return
		}
		if !w.p.opt.StrictOrder || !errors.Is(err, fdengine.ErrStreamBroken) {
			w.violation(fmt.Sprintf("P11: a healthy command at the end: %v", err))
			return
		}
	}
}

// or is n, or def when n is 0.
func or[N int | time.Duration](n, def N) N {
	if n == 0 {
		return def
	}
	return n
}

// sample holds the gauges against the limits all the time.
func (w *world) sample(stop <-chan struct{}) {
	o := w.p.opt
	window, queue := or(o.Window, 65536), or(o.Queue, 65536)
	windowBytes, queueBytes := or(o.WindowBytes, 64<<20), or(o.QueueBytes, 64<<20)
	silence := max(or(o.ReadTimeout, 5*time.Second), or(o.WriteTimeout, 5*time.Second)) + 200*time.Millisecond
	every := 500 * time.Microsecond
	for n := 0; ; n++ {
		if n > 400 {
			every = 50 * time.Millisecond
		}
		if w.within(stop, every) {
			return
		}
		s := w.Stats()
		bad := func(ok bool, what string) {
			if !ok {
				w.violation(fmt.Sprintf("P8: %s: %+v", what, s))
			}
		}
		bad(s.InFlightCommands <= window, "window")
		bad(s.InFlightBytes <= windowBytes || s.InFlightCommands <= 1 || w.quiet(), "window bytes")
		total := s.QueueCommands + s.InFlightCommands
		bad(total <= window+queue || o.reroute != rerouteNone, "commands")
		if bytes := s.QueueBytes + s.InFlightBytes; bytes > windowBytes+queueBytes && total > 1 && o.reroute == rerouteNone {
			bad(w.batches(), "bytes")
		}
		if o.ReadTimeout >= 0 && w.second == nil && s.InFlightCommands > 0 {
			w.mu.Lock()
			c := w.loan
			w.mu.Unlock()
			bad(c == nil || c.silent() <= silence, "a silent connection is kept")
		}
		bad(s.QueueCommands >= 0 && s.QueueBytes >= 0 && s.InFlightCommands >= 0 && s.InFlightBytes >= 0, "negative")
	}
}

// batches says whether the program has batches: a piece larger than the byte limit is admitted alone, as a whole.
func (w *world) batches() bool {
	for _, c := range w.p.callers {
		for _, s := range c.steps {
			if len(s.cmds) > 1 {
				return true
			}
		}
	}
	return false
}
