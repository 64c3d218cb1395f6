package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/pause"
)

// waiting is how many arrivals may wait for a free caller before the generator waits as well. Those it has not yet
// made are not lost and not put off: their latency begins when they were due.
const waiting = 1 << 16

// arrive measures with arrivals that do not wait for each other. Each is handed to one of the Callers goroutines, the
// same for every contender, and its latency is from the time at which it was due to its checked reply: the time in
// the generator, waiting for a free caller, and in the client. So a client that stalls pays for all that would have
// been sent meanwhile.
func arrive(c contend.Client, s Spec) (r Result, err error) {
	var callers []contend.Caller
	for i := range s.Callers {
		callers = append(callers, c.Caller(i))
	}
	timer, err := pause.New()
	if err != nil {
		return r, err
	}
	defer timer.Close()
	a := newArrivals(callers, timer)
	warmed, err := a.run(s.Rate, s.Warm)
	if err != nil {
		return r, fmt.Errorf("%s: warming up: %w", s.Contender, err)
	}
	runtime.GC()
	unprofile, err := profile(s.Profile)
	if err != nil {
		return r, err
	}
	a.reset()
	from := before(c)
	ops, err := a.run(s.Rate, s.Length)
	to := after(c)
	if err := errors.Join(err, unprofile()); err != nil {
		return r, fmt.Errorf("%s: %w", s.Contender, err)
	}
	per(&r, ops, from, to)
	r.Total = warmed + ops
	at, samples := a.took.quantiles(0.5, 0.99, 0.999)
	r.P50, r.P99, r.P999, r.Samples = at[0], at[1], at[2], samples
	r.Max = float64(a.longest())
	late, _ := a.late.quantiles(0.99)
	r.Late = late[0]
	return r, nil
}

// arrivals is the generator and its callers.
type arrivals struct {
	callers []contend.Caller
	took    *histogram
	late    *histogram
	max     []time.Duration // by caller
	random  *rand.Rand
	timer   *pause.Timer
}

func newArrivals(callers []contend.Caller, timer *pause.Timer) *arrivals {
	a := &arrivals{callers: callers, timer: timer, max: make([]time.Duration, len(callers)), random: rand.New(rand.NewPCG(1, 2))}
	a.reset()
	return a
}

func (a *arrivals) reset() {
	a.took, a.late = new(histogram), new(histogram)
	clear(a.max)
}

func (a *arrivals) longest() (d time.Duration) {
	for _, m := range a.max {
		d = max(d, m)
	}
	return d
}

// run lets commands arrive for d and waits until all are answered.
func (a *arrivals) run(rate float64, d time.Duration) (int64, error) {
	room := waiting
	if rate <= 0 {
		room = len(a.callers) // latencies mean nothing then
	}
	var (
		wg    sync.WaitGroup
		due   = make(chan time.Duration, room)
		over  atomic.Bool
		first atomic.Pointer[error]
		start = time.Now()
	)
	for i, c := range a.callers {
		wg.Go(func() {
			for at := range due {
				if over.Load() {
					continue
				}
				if err := c.Call(); err != nil {
					first.CompareAndSwap(nil, &err)
					over.Store(true)
					continue
				}
				took := time.Since(start) - at
				a.took.add(i, took)
				a.max[i] = max(a.max[i], took)
			}
		})
	}
	n, err := a.generate(rate, d, start, due, &over)
	close(due)
	wg.Wait()
	if err != nil {
		return 0, err
	}
	if err := first.Load(); err != nil {
		return 0, *err
	}
	return n, nil
}

// atOnce is how long the generator waits at least when nothing is due: what becomes due meanwhile is handed out
// together, each with its own time.
const atOnce = 50 * time.Microsecond

// generate hands out the arrivals of d. It must not depend on timers of the runtime, which an idle process lets
// oversleep by a millisecond, several latencies. It must not spin either: the client and its server would have one CPU
// less, and on a machine with two that is half. So it waits for a timer of the kernel, the same for every contender;
// what that is late is part of the latencies, and reported.
func (a *arrivals) generate(rate float64, d time.Duration, start time.Time, due chan<- time.Duration, over *atomic.Bool) (n int64, err error) {
	if rate <= 0 {
		for now := time.Duration(0); now < d && !over.Load(); n++ {
			due <- now
			now = time.Since(start)
		}
		return n, nil
	}
	now := time.Since(start)
	for next := time.Duration(0); next < d && !over.Load(); n++ {
		if now < next {
			if err := a.timer.Until(start, max(next, now+atOnce)); err != nil {
				return n, err
			}
			now = time.Since(start)
		}
		a.late.add(0, now-next)
		due <- next
		next += time.Duration(a.random.ExpFloat64() / rate * float64(time.Second))
	}
	return n, nil
}
