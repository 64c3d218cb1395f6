package bench

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
)

// allocated returns the allocations per command of f, which sends n of them, over the whole process.
func allocated(t *testing.T, n int, f func()) float64 {
	t.Helper()
	if raced() {
		t.Skip("the race detector makes sync.Pool forget: run without -race (make test does both)")
	}
	f() // once more for what grows to its size
	return testing.AllocsPerRun(20, f) / float64(n)
}

// few is what may be allocated per command, for a pool that a garbage collection has emptied meanwhile.
const few = 0.02

func TestNoAllocationPerDo(t *testing.T) {
	r := counting(t)
	r.warm(t)
	cmd := set(64)
	require.Less(t, allocated(t, 1000, func() {
		for range 1000 {
			if err := r.Do(context.Background(), cmd); err != nil {
				t.Fatal(err)
			}
		}
	}), few)
}

func TestNoAllocationPerLargeDo(t *testing.T) {
	r := counting(t)
	r.warm(t)
	cmd := set(64 << 10)
	require.Less(t, allocated(t, 100, func() {
		for range 100 {
			if err := r.Do(context.Background(), cmd); err != nil {
				t.Fatal(err)
			}
		}
	}), 0.1)
}

func TestNoAllocationPerDoWithACancellableContext(t *testing.T) {
	r := counting(t)
	r.warm(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := set(64)
	require.Less(t, allocated(t, 1000, func() {
		for range 1000 {
			if err := r.Do(ctx, cmd); err != nil {
				t.Fatal(err)
			}
		}
	}), few)
}

func TestNoAllocationPerSubmit(t *testing.T) {
	r := counting(t)
	r.warm(t)
	var cmds []fdengine.Command
	for range 1000 {
		cmds = append(cmds, set(64))
	}
	done := newTally()
	require.Less(t, allocated(t, len(cmds), func() {
		if err := done.submit(r, cmds); err != nil {
			t.Fatal(err)
		}
		if err := done.wait(); err != nil {
			t.Fatal(err)
		}
	}), few)
}

func TestNoAllocationPerCommandOfAGroup(t *testing.T) {
	r := counting(t)
	r.warm(t)
	var cmds []fdengine.Command
	for range 1000 {
		cmds = append(cmds, set(64))
	}
	g := fdengine.NewGroup()
	require.Less(t, allocated(t, len(cmds), func() {
		g.Add(len(cmds))
		for _, c := range cmds {
			if err := r.Submit(context.Background(), c, g); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}), few)
}

func TestNoAllocationPerCommandOfDoBatch(t *testing.T) {
	r := counting(t)
	r.warm(t)
	cmds, errs := make([]fdengine.Command, 1000), make([]error, 1000)
	for i := range cmds {
		cmds[i] = set(64)
	}
	require.Less(t, allocated(t, len(cmds), func() {
		if err := r.DoBatch(context.Background(), cmds, errs); err != nil {
			t.Fatal(err)
		}
	}), few)
}

func TestSixtyFourCallersShareTheirWrites(t *testing.T) {
	const callers, each, least = 64, 500, 8
	r := counting(t)
	r.warm(t)
	before := r.stats()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			cmd := set(64)
			for range each {
				if err := r.Do(context.Background(), cmd); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	after := r.stats()
	require.InDelta(t, callers*each, after.Sent-before.Sent, 1, "the write of the last warm-up may be counted late")
	got := float64(after.Sent-before.Sent) / float64(after.Writes-before.Writes)
	t.Logf("%.1f commands per write, %.1f replies per read", got, float64(after.Replies-before.Replies)/float64(after.Reads-before.Reads))
	require.GreaterOrEqual(t, got, float64(least))
}
