package soak

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/faults/proxy"
	"github.com/fdengine/fullduplex/internal/faults/tally"
)

var onlyRound = flag.Uint64("soak.round", 0, "run this round only; 0 = all")

// heapSlack is how much more of the heap may be in use after a round than before it, in bytes: blocks that the log
// keeps for the next burst, and what the runtime and the testing package hold.
const heapSlack = 6 << 20

// Covers: E-4, E-5, E-6, E-35, E-39, E-45, A-7
func TestNothingThatACallerWasToldIsRefutedByServersInTrouble(t *testing.T) {
	rounds := tally.Count(1, 22)
	for round := uint64(1); round <= uint64(rounds); round++ {
		if *onlyRound != 0 && round != *onlyRound {
			continue
		}
		if !t.Run(fmt.Sprintf("round %d of seed %d", round, tally.Seed()), func(t *testing.T) { oneRound(t, round) }) {
			return
		}
	}
}

// oneRound starts servers and load, makes trouble, and judges.
func oneRound(t *testing.T, round uint64) {
	rng := tally.Rand(round << 16)
	r := newRig(t, rng)
	plan := choose(rng, tally.Count(6, len(kinds)), r.timeout)
	t.Logf("plan: %v", plan)
	r.warm()
	goroutines, heap := runtime.NumGoroutine(), heapInUse()

	r.start(round)
	defer r.stopLoad()
	for _, p := range plan {
		r.answers(p.site, p.after)
		p.do(r)
	}
	for site := range sites {
		r.answers(site, 200)
	}
	r.stopLoad()

	stats, usage := r.redis.Stats(), r.tube.Usage()
	for _, s := range []struct{ accepted, settled, left uint64 }{
		{stats.Engine.Accepted, stats.Engine.Settled, uint64(stats.Engine.QueueCommands)},
		{usage.Engine.Accepted, usage.Engine.Settled, uint64(usage.Engine.QueueCommands)},
	} {
		require.Equal(t, s.accepted, s.settled)
		require.Zero(t, s.left)
	}
	// Old connections are gone, and what their servers were still doing is done.
	for _, s := range r.sites {
		s.proxy.Each(func(l *proxy.Link) { l.Reset(proxy.BothSides) })
	}
	r.alone()
	wrongs := r.judge()
	told := r.sums()
	r.forget()
	for _, err := range wrongs {
		t.Error(err)
	}
	t.Logf("told: answered=%d refused=%d maybe=%d notSent=%d withdrawn=%d; redis sessions=%d replays=%d; beanstalkd sessions=%d replays=%d",
		told[answered], told[refused], told[maybe], told[notSent], told[withdrawn],
		stats.Engine.Sessions, stats.Engine.Replays, usage.Engine.Sessions, usage.Engine.Replays)

	// The clients are as they were: connected again, with no more goroutines and memory than at first.
	r.warm()
	r.until(fmt.Sprintf("the number of goroutines to be %d again", goroutines), func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := heapInUse(); now > heap+heapSlack {
		t.Errorf("the heap was %d KiB and is %d KiB", heap>>10, now>>10)
	}
	ctx, cancel := context.WithTimeout(context.Background(), liveness)
	defer cancel()
	_, err := r.redis.Shutdown(ctx)
	require.NoError(t, err)
	_, err = r.tube.Shutdown(ctx)
	require.NoError(t, err)
	<-r.redis.Done()
	<-r.tube.Done()
	require.Zero(t, r.redis.Stats().Pool.Open+r.tube.Usage().Pool.Open)
	tally.Program(1)
	tally.Scenario(len(plan))
}

// stopLoad lets all callers go and waits for them.
func (r *rig) stopLoad() {
	if r.running() {
		close(r.stop)
	}
	ended := make(chan struct{})
	go func() {
		r.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(liveness):
		r.hang("the callers to end")
	}
}

// forget drops the books of the load, so that they do not count as memory of the clients.
func (r *rig) forget() {
	r.counters, r.cells, r.entries, r.lists, r.jobs = nil, nil, nil, nil, nil
}

// heapInUse is what is reachable, in bytes.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools still held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
