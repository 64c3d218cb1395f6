package soak

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/redis"
)

// The sites of a round.
const (
	redisSite = iota
	tubeSite
	sites
)

// load is all callers of one round and what they were told.
type load struct {
	redis *redis.Client
	tube  *beanstalkd.Client
	stop  chan struct{}
	wg    sync.WaitGroup
	done  [sites]atomic.Int64 // answered commands

	counters []*counter
	cells    []*cell
	entries  []*series // XADD
	lists    []*series // RPUSH
	jobs     []*series

	mu struct {
		sync.Mutex
		wrongs []error
	}
}

// replayBudget is that of the commands that may run again.
const replayBudget = 3

// start sends 64 callers that wait, and some that do not.
func (l *load) start(round uint64) {
	l.stop = make(chan struct{})
	caller := uint64(0)
	run := func(n int, f func(name string, rng *rand.Rand)) {
		for range n {
			caller++
			rng := tally.Rand(round<<16 | caller)
			name := fmt.Sprintf("c%d", caller)
			f(name, rng)
		}
	}
	of := func(list *[]*series, name string, most int) *series {
		s := newSeries(name, most)
		*list = append(*list, s)
		return s
	}
	run(16, func(name string, rng *rand.Rand) {
		c := &counter{key: name}
		l.counters = append(l.counters, c)
		l.wg.Go(func() { l.count(c, rng) })
	})
	run(10, func(name string, rng *rand.Rand) {
		c := &cell{key: name}
		l.cells = append(l.cells, c)
		l.wg.Go(func() { l.set(c, rng) })
	})
	run(6, func(name string, rng *rand.Rand) { l.wg.Go(func() { l.echo(name, rng) }) })
	run(14, func(name string, rng *rand.Rand) {
		s := of(&l.entries, name, 1)
		l.wg.Go(func() { l.add(s, rng) })
	})
	run(2, func(name string, rng *rand.Rand) {
		s := of(&l.entries, name, 1)
		s.epochs = []int{0}
		l.wg.Go(func() { l.walk(s, rng) })
	})
	for _, most := range []int{1, 1 + replayBudget} {
		run(8, func(name string, rng *rand.Rand) {
			s := of(&l.jobs, name, most)
			l.wg.Go(func() { l.put(s, rng) })
		})
	}
	// These are beside the 64.
	for _, most := range []int{1, 1 + replayBudget} {
		run(3, func(name string, rng *rand.Rand) {
			list := &l.entries
			if most > 1 {
				list = &l.lists
			}
			s := of(list, name, most)
			s.epochs = []int{0}
			l.wg.Go(func() { l.flow(s, rng) })
		})
	}
	run(2, func(name string, rng *rand.Rand) {
		s := of(&l.entries, name, 1)
		l.wg.Go(func() { l.pour(s, rng) })
	})
	run(2, func(name string, rng *rand.Rand) {
		s := of(&l.entries, name, 1)
		l.wg.Go(func() { l.chain(s) })
	})
	run(2, func(name string, rng *rand.Rand) {
		s := of(&l.jobs, name, 1)
		l.wg.Go(func() { l.pourJobs(s, rng) })
	})
}

func (l *load) running() bool {
	select {
	case <-l.stop:
		return false
	default:
		return true
	}
}

// rest waits for d, or until the load ends.
func (l *load) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.stop:
	}
}

// wrong notes a fault that no book knows of.
func (l *load) wrong(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.wrongs = append(l.mu.wrongs, err)
}

// sums is how many commands were told what.
func (l *load) sums() (n [withdrawn + 1]int) {
	for _, list := range [][]*series{l.entries, l.lists, l.jobs} {
		for _, s := range list {
			s.sums(&n)
		}
	}
	for _, c := range l.counters {
		n[answered], n[maybe] = n[answered]+int(c.ok), n[maybe]+int(c.maybe)
	}
	for _, c := range l.cells {
		for _, w := range c.told {
			n[w]++
		}
	}
	return n
}
