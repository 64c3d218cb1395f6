package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
)

// sampleEvery is how many calls share one measured latency.
const sampleEvery = 8

// ErrNoFace says that a contender has no such face.
var ErrNoFace = errors.New("load: the contender does not have this face")

// Run opens the contender, warms it up, measures, and closes it. ctx bounds the opening.
func Run(ctx context.Context, s Spec) (Result, error) {
	who, err := contend.Find(s.Contender)
	if err != nil {
		return Result{}, err
	}
	if s.Procs > 0 {
		before := runtime.GOMAXPROCS(s.Procs)
		defer runtime.GOMAXPROCS(before)
	}
	switch s.Face {
	case Replay:
		return replay(ctx, who, s)
	case Flood:
		return flood(ctx, who, s)
	}
	if s.Get && !who.NoIO {
		if err := nullserver.SetValue(s.Addr, s.Value); err != nil {
			return Result{}, err
		}
	}
	c, err := who.Open(ctx, s.target())
	if err != nil {
		return Result{}, fmt.Errorf("%s: open: %w", s.Contender, err)
	}
	var r Result
	if s.Face == Open {
		r, err = arrive(c, s)
	} else {
		r, err = measure(c, s)
	}
	return r, errors.Join(err, c.Close())
}

func measure(c contend.Client, s Spec) (r Result, err error) {
	phase, err := prepare(c, s)
	if err != nil {
		return r, err
	}
	stop := spin(s.Spinners)
	defer stop()
	warmed, err := phase(s.Warm, new(histogram))
	if err != nil {
		return r, fmt.Errorf("%s: warming up: %w", s.Contender, err)
	}
	runtime.GC()
	unprofile, err := profile(s.Profile)
	if err != nil {
		return r, err
	}
	h := new(histogram)
	from := before(c)
	ops, err := phase(s.Length, h)
	to := after(c)
	if err := errors.Join(err, unprofile()); err != nil {
		return r, fmt.Errorf("%s: %w", s.Contender, err)
	}
	per(&r, ops, from, to)
	r.Total = warmed + ops
	at, samples := h.quantiles(0.5, 0.99, 0.999)
	r.P50, r.P99, r.P999, r.Samples = at[0], at[1], at[2], samples
	return r, nil
}

// phase runs all callers for d and returns how many commands were answered.
type phase func(d time.Duration, h *histogram) (int64, error)

// prepare makes the callers once, for warming up and measuring.
func prepare(c contend.Client, s Spec) (phase, error) {
	var callers []contend.Caller
	each := 1
	bulk, isBulk := c.(contend.Bulk)
	switch {
	case isBulk:
		callers, each = []contend.Caller{bulk.All(s.Depth())}, s.Depth()
	case s.Face == Blocking:
		for i := range s.Callers {
			callers = append(callers, c.Caller(i))
		}
	case s.Face == Batch:
		b, is := c.(contend.Batcher)
		if !is {
			return nil, ErrNoFace
		}
		for i := range s.Callers {
			callers = append(callers, b.Batch(i, s.Size))
		}
		each = s.Size
	case s.Face == Async:
		st, is := c.(contend.Streamer)
		if !is {
			return nil, ErrNoFace
		}
		flow, err := st.Stream(s.Window)
		if err != nil {
			return nil, err
		}
		return func(d time.Duration, _ *histogram) (int64, error) {
			over := alarm(d)
			return flow.Run(func() bool { return !over.Load() })
		}, nil
	default:
		return nil, fmt.Errorf("load: there is no face %q", s.Face)
	}
	return func(d time.Duration, h *histogram) (int64, error) {
		n, err := all(callers, d, h)
		return n * int64(each), err
	}, nil
}

// alarm is set after d.
func alarm(d time.Duration) *atomic.Bool {
	over := new(atomic.Bool)
	time.AfterFunc(d, func() { over.Store(true) })
	return over
}

// all runs each caller on a goroutine of its own until d is over, or one fails.
func all(callers []contend.Caller, d time.Duration, h *histogram) (int64, error) {
	var (
		wg    sync.WaitGroup
		total atomic.Int64
		first atomic.Pointer[error]
		over  atomic.Bool
		start = make(chan struct{})
	)
	for i, c := range callers {
		wg.Go(func() {
			<-start
			n, err := one(i, c, &over, h)
			total.Add(n)
			if err != nil {
				first.CompareAndSwap(nil, &err)
				over.Store(true)
			}
		})
	}
	t := time.AfterFunc(d, func() { over.Store(true) })
	close(start)
	wg.Wait()
	t.Stop()
	if err := first.Load(); err != nil {
		return 0, *err
	}
	return total.Load(), nil
}

// one is the measuring loop of caller i. All callers begin at the same moment, which is a burst that the row is not about: the
// latency of a caller's first call is not taken, and which of the others are differs from caller to caller. Were it the
// first of each eight for all, the burst of 8,192 callers would be a tenth of all samples of a second.
func one(i int, c contend.Caller, over *atomic.Bool, h *histogram) (n int64, err error) {
	for !over.Load() {
		if (n+int64(i))%sampleEvery != 1 || n == 0 {
			err = c.Call()
		} else {
			from := time.Now()
			err = c.Call()
			h.add(i, time.Since(from))
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// spin uses up n CPUs until stop.
func spin(n int) (stop func()) {
	var over atomic.Bool
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		wg.Wait()
	}
}
