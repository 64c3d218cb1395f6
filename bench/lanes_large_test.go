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

// largePeriod is how long one operation of BenchmarkLanesBesideLargeReplies takes.
const largePeriod = 2 * time.Second

// BenchmarkLanesBesideLargeReplies has 16 callers read small values while one reads 8 MiB again and again, whose
// replies stand in front of those of their lane. An operation is two seconds of that; reported are the latencies of the
// small reads and how many there were.
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
		for i := range 16 {
			must(redis.Set(fmt.Sprint("small", i), "v"))
		}
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			all := latencies{b: b}
			var large latencies
			large.b = b
			for b.Loop() {
				var callers sync.WaitGroup
				end := time.Now().Add(largePeriod)
				callers.Go(func() { large.read(c, "large", end) })
				for i := range 16 {
					callers.Go(func() { all.read(c, fmt.Sprint("small", i), end) })
				}
				callers.Wait()
			}
			for _, p := range []int{50, 90, 99} {
				b.ReportMetric(float64(all.percentile(p).Microseconds()), fmt.Sprintf("p%d-us", p))
			}
			seconds := float64(b.N) * largePeriod.Seconds()
			b.ReportMetric(float64(len(all.mu.took))/seconds, "small/s")
			b.ReportMetric(float64(len(large.mu.took))/seconds, "large/s")
		})
		_ = c.Close()
		<-c.Done()
	}
}

// latencies are those of the reads of some callers.
type latencies struct {
	b  *testing.B
	mu struct {
		sync.Mutex
		took []time.Duration
	}
}

// read gets a value again and again until end.
func (l *latencies) read(c *redis.Client, key string, end time.Time) {
	cmd := redis.Get(key)
	var own []time.Duration
	for from := time.Now(); from.Before(end); {
		if err := c.Do(context.Background(), cmd); err != nil {
			l.b.Error(err)
			return
		}
		to := time.Now()
		own = append(own, to.Sub(from))
		from = to
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.took = append(l.mu.took, own...)
}

func (l *latencies) percentile(p int) time.Duration {
	slices.Sort(l.mu.took)
	return l.mu.took[(len(l.mu.took)-1)*p/100]
}
