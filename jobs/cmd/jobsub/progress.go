package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/fdengine/fullduplex/jobs/submit"
)

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 3 * time.Second
)

// progress shows how far a run is: a bar on a terminal, else a plain line every few seconds.
type progress struct {
	stopped chan struct{}
	wg      sync.WaitGroup
}

func newProgress(w *work, r *submit.Run, in *counted) *progress {
	p := &progress{stopped: make(chan struct{})}
	if w.quiet {
		return p
	}
	v := view{r: r, in: in, bytes: w.bytes, jobs: w.jobs}
	every, show, end := lineEvery, func() { fmt.Fprintln(w.err, v.line()) }, func() {}
	if f, ok := w.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b := v.newBar(f)
		every, show, end = barEvery, func() { v.draw(b) }, func() { v.draw(b); fmt.Fprintln(f) }
	}
	p.wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		defer end()
		for {
			select {
			case <-tick.C:
				show()
			case <-p.stopped:
				return
			}
		}
	})
	return p
}

func (p *progress) stop() {
	close(p.stopped)
	p.wg.Wait()
}

// view reads the state of a run.
type view struct {
	r           *submit.Run
	in          *counted
	bytes, jobs int64 // in all; 0 = unknown
}

// done returns how much of how much is through, 0 of 0 when the end is unknown.
func (v view) done(a submit.Account) (n, of int64) {
	settled := a.Accepted - a.Unsettled()
	switch {
	case v.jobs > 0:
		return settled, v.jobs
	case v.bytes > 0 && a.Accepted > 0:
		// What was read, less the share of it that is not settled.
		return int64(float64(v.in.n.Load()) * float64(settled) / float64(a.Accepted)), v.bytes
	}
	return 0, v.bytes
}

func (v view) line() string {
	a := v.r.Account()
	s := fmt.Sprintf("progress: answered=%d in_flight=%d failed=%d not_sent=%d maybe=%d corrupt=%d rate=%.0f/s",
		a.Answered, a.Unsettled(), a.Failed, a.NotSent, a.Maybe, a.Corrupt, a.Rate())
	n, of := v.done(a)
	if n > 0 && of > 0 {
		left := time.Duration(float64(a.Elapsed) * float64(of-n) / float64(n))
		s += fmt.Sprintf(" %d%% eta=%s", 100*n/of, left.Round(time.Second))
	}
	return s
}

func (v view) newBar(f *os.File) *progressbar.ProgressBar {
	of := max(v.jobs, v.bytes)
	if of == 0 {
		of = -1 // a spinner
	}
	return progressbar.NewOptions64(of,
		progressbar.OptionSetWriter(f),
		progressbar.OptionFullWidth(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowElapsedTimeOnFinish(),
		progressbar.OptionThrottle(barEvery/2),
		progressbar.OptionSetDescription("submitting"))
}

func (v view) draw(b *progressbar.ProgressBar) {
	a := v.r.Account()
	text := fmt.Sprintf("%d jobs %.0f/s", a.Answered, a.Rate())
	if bad := a.Failed + a.NotSent + a.Maybe + a.Corrupt; bad > 0 {
		text += fmt.Sprintf(" %d not taken", bad)
	}
	b.Describe(text)
	n, _ := v.done(a)
	_ = b.Set64(n) // a bar that cannot be drawn is no reason to stop
}

// counted counts the bytes read through it.
type counted struct {
	r io.Reader
	n atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// Close closes the reader below when it can be closed, which ends a Read that waits.
func (c *counted) Close() error {
	if cl, ok := c.r.(io.Closer); ok {
		return cl.Close()
	}
	return nil
}
