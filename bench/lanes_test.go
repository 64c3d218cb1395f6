//go:build unix

package bench

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

var lanesServer = flag.String("lanes.server", "", "address of a server that BenchmarkLanes uses beside its own redis-server, such as `bench/peers/bin/peers server` prints")

var laneCounts = []int{1, 2, 4}

// overLanes runs f for each server and number of lanes; lanes are innermost, so that what is compared is measured
// one after the other. Beside the usual it reports the CPU time of this process, which the servers are not part of.
func overLanes(b *testing.B, face string, callers []int, f func(b *testing.B, c *redis.Client, callers int)) {
	addrs := map[string]string{"redis": "", "null": *lanesServer}
	if haveRedis() {
		addrs["redis"] = testserver.StartRedis(b, testserver.RedisOptions{}).Addr()
	}
	for _, server := range []string{"null", "redis"} {
		addr := addrs[server]
		if addr == "" {
			continue
		}
		for _, n := range callers {
			for _, lanes := range laneCounts {
				c, err := redis.New(redis.Options{Addr: addr, Lanes: lanes})
				if err != nil {
					b.Fatal(err)
				}
				rig{c, nil}.warm(b)
				b.Run(fmt.Sprintf("server=%s/face=%s/callers=%d/lanes=%d", server, face, n, lanes), func(b *testing.B) {
					before, cpu := c.Stats().Engine, processCPU()
					f(b, c, n)
					used, after := processCPU()-cpu, c.Stats().Engine
					b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
					b.ReportMetric(float64(after.Sent-before.Sent)/float64(after.Writes-before.Writes), "cmds/write")
				})
				_ = c.Close()
				<-c.Done()
			}
		}
	}
}

func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// keyed are SETs of different keys.
func keyed(caller, n int) []fdengine.Command {
	cmds := make([]fdengine.Command, n)
	for i := range cmds {
		cmds[i] = redis.Set(fmt.Sprintf("bench:key:%06d", caller*1000+i), strings.Repeat("v", 64))
	}
	return cmds
}

// BenchmarkLanes compares one shared connection with several. docs/PERFORMANCE.md has a result.
func BenchmarkLanes(b *testing.B) {
	overLanes(b, "do", []int{1, 16, 64, 256, 1024}, func(b *testing.B, c *redis.Client, callers int) {
		each := make(chan int, callers+64)
		for i := range callers + 64 {
			each <- i
		}
		parallel(b, callers, func(next func() bool) {
			cmd := keyed(<-each, 1)[0]
			for next() {
				if err := c.Do(context.Background(), cmd); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	overLanes(b, "submit", []int{1, 4}, func(b *testing.B, c *redis.Client, callers int) {
		each := make(chan int, callers+64)
		for i := range callers + 64 {
			each <- i
		}
		parallel(b, callers, func(next func() bool) {
			const groups, size = 16, 128
			var cmds [groups][]fdengine.Command
			var tallies [groups]*tally
			caller := <-each
			for i := range groups {
				cmds[i], tallies[i] = keyed(caller*groups+i, size), newTally()
				tallies[i].done <- struct{}{}
			}
			for i, more := 0, true; more; i = (i + 1) % groups {
				if err := tallies[i].wait(); err != nil {
					b.Error(err)
					return
				}
				n := 0
				for ; n < size && more; n++ {
					more = next()
				}
				if n == 0 {
					tallies[i].done <- struct{}{}
					break
				}
				if err := tallies[i].submit(c, cmds[i][:n]); err != nil {
					b.Error(err)
					return
				}
			}
			for i := range groups {
				if err := tallies[i].wait(); err != nil {
					b.Error(err)
				}
			}
		})
	})
	overLanes(b, "batch", []int{1, 16}, func(b *testing.B, c *redis.Client, callers int) {
		each := make(chan int, callers+64)
		for i := range callers + 64 {
			each <- i
		}
		parallel(b, callers, func(next func() bool) {
			cmds, errs := keyed(<-each, batchSize), make([]error, batchSize)
			for more := true; more; {
				n := 0
				for ; n < batchSize && more; n++ {
					more = next()
				}
				if err := c.DoBatch(context.Background(), cmds[:n], errs[:n]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
