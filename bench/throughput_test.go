package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/fdengine/fullduplex/fdengine"
)

const (
	batchSize   = 100  // commands of one DoBatch
	asyncWindow = 4096 // commands that all callers of Submit together keep in flight
)

var (
	callerCounts = []int{1, 16, 64, 256, 1024}
	sizes        = []int{64, 1024}
)

// everywhere runs f for each server, size and number of callers.
func everywhere(b *testing.B, f func(b *testing.B, r rig, callers, size int)) {
	servers := []struct {
		name string
		open func(testing.TB) rig
	}{{"counting", counting}, {"redis", real}}
	for _, s := range servers {
		b.Run("server="+s.name, func(b *testing.B) {
			if s.name == "redis" && !haveRedis() {
				b.Skip("no redis-server (Debian package redis-server)")
			}
			r := s.open(b)
			r.warm(b)
			for _, size := range sizes {
				for _, callers := range callerCounts {
					b.Run(fmt.Sprintf("size=%d/callers=%d", size, callers), func(b *testing.B) {
						b.ReportAllocs()
						before := r.stats()
						f(b, r, callers, size)
						after := r.stats()
						b.ReportMetric(float64(after.Sent-before.Sent)/float64(after.Writes-before.Writes), "cmds/write")
						b.ReportMetric(float64(after.Replies-before.Replies)/float64(after.Reads-before.Reads), "cmds/read")
					})
				}
			}
		})
	}
}

// parallel runs body on that many goroutines (a multiple of GOMAXPROCS, so at least that many).
func parallel(b *testing.B, callers int, body func(next func() bool)) {
	if callers == 1 {
		body(b.Loop)
		return
	}
	b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) { body(pb.Next) })
}

func BenchmarkDo(b *testing.B) {
	everywhere(b, func(b *testing.B, r rig, callers, size int) {
		parallel(b, callers, func(next func() bool) {
			cmd := set(size)
			for next() {
				if err := r.Do(context.Background(), cmd); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkSubmit has each caller keep two groups of commands in flight in turn; an operation is one command.
func BenchmarkSubmit(b *testing.B) {
	everywhere(b, func(b *testing.B, r rig, callers, size int) {
		parallel(b, callers, func(next func() bool) {
			group := max(1, asyncWindow/callers/2)
			var cmds [2][]fdengine.Command
			tallies := [2]*tally{newTally(), newTally()}
			for i := range cmds {
				for range group {
					cmds[i] = append(cmds[i], set(size))
				}
			}
			inFlight := [2]bool{}
			for side, more := 0, true; more; side = 1 - side {
				if inFlight[side] {
					if err := tallies[side].wait(); err != nil {
						b.Error(err)
						return
					}
				}
				n := 0
				for ; n < group && more; n++ {
					more = next()
				}
				if inFlight[side] = n > 0; !inFlight[side] {
					continue
				}
				if err := tallies[side].submit(r, cmds[side][:n]); err != nil {
					b.Error(err)
					return
				}
			}
			for side, open := range inFlight {
				if open {
					if err := tallies[side].wait(); err != nil {
						b.Error(err)
					}
				}
			}
		})
	})
}

// BenchmarkDoBatch sends batches of 100; an operation is one command.
func BenchmarkDoBatch(b *testing.B) {
	everywhere(b, func(b *testing.B, r rig, callers, size int) {
		parallel(b, callers, func(next func() bool) {
			cmds := make([]fdengine.Command, batchSize)
			for i := range cmds {
				cmds[i] = set(size)
			}
			errs := make([]error, batchSize)
			for more := true; more; {
				n := 0
				for ; n < batchSize && more; n++ {
					more = next()
				}
				if err := r.DoBatch(context.Background(), cmds[:n], errs[:n]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
