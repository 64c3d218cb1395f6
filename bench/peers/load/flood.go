package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// lookEvery is how often the heap is looked at.
const lookEvery = 5 * time.Millisecond

// flood measures what a client holds in memory when its server takes less than it is given: Peak is what the heap
// grew by at most, garbage included. What is unanswered at the end is given up.
func flood(ctx context.Context, who contend.Contender, s Spec) (r Result, err error) {
	c, err := who.Open(ctx, s.target())
	if err != nil {
		return r, fmt.Errorf("%s: open: %w", s.Contender, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	f, is := c.(contend.Flooder)
	if !is {
		return r, ErrNoFace
	}
	runtime.GC()
	idle := heapNow()
	from := before(c)
	answered, limit, err := f.Flood()
	if err != nil {
		return r, err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	peak := idle
	for time.Since(from.at) < s.Length {
		<-tick.C
		peak = max(peak, heapNow())
	}
	n := answered()
	per(&r, n, from, after(c))
	r.Total, r.Limit, r.Peak = n, float64(limit), float64(peak-idle)
	return r, nil
}

// heapNow is what objects take, those that are garbage and not yet collected included.
func heapNow() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
