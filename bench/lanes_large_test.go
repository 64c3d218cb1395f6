//go:build unix

package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// BenchmarkLanesBesideLargeReplies has 16 callers read small values while one reads 8 MiB again and again, whose
// replies stand in front of those of their lane. An operation is a small read; its latencies are reported.
func BenchmarkLanesBesideLargeReplies(b *testing.B) {
	if !haveRedis() {
		b.Skip("no redis-server (Debian package redis-server)")
	}
	s := testserver.StartRedis(b, testserver.RedisOptions{})
	for _, lanes := range []int{1, 2, 4, 8} {
		c, err := redis.New(redis.Options{Addr: s.Addr(), Lanes: lanes})
		if err != nil {
			b.Fatal(err)
		}
		must := func(cmd *redis.Cmd) {
			if err := c.Do(context.Background(), cmd); err != nil {
				b.Fatal(err)
			}
		}
		must(redis.Set("large", strings.Repeat("x", 8<<20)))
		for i := range 64 {
			must(redis.Set(fmt.Sprint("small", i), "v"))
		}
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			stop := make(chan struct{})
			var large sync.WaitGroup
			large.Go(func() {
				cmd := redis.Get("large")
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := c.Do(context.Background(), cmd); err != nil {
						b.Error(err)
						return
					}
				}
			})
			var mu sync.Mutex
			var all []time.Duration
			next := 0
			parallel(b, 16, func(more func() bool) {
				mu.Lock()
				cmd := redis.Get(fmt.Sprint("small", next%64))
				next++
				mu.Unlock()
				var own []time.Duration
				for more() {
					from := time.Now()
					if err := c.Do(context.Background(), cmd); err != nil {
						b.Error(err)
						return
					}
					own = append(own, time.Since(from))
				}
				mu.Lock()
				all = append(all, own...)
				mu.Unlock()
			})
			close(stop)
			large.Wait()
			slices.Sort(all)
			for _, p := range []int{10, 50, 99} {
				b.ReportMetric(float64(all[(len(all)-1)*p/100].Microseconds()), fmt.Sprintf("p%d-us", p))
			}
		})
		_ = c.Close()
		<-c.Done()
	}
}
