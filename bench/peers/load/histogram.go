package load

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	subBits = 5 // 32 steps per doubling: 3 %
	buckets = (64 - subBits + 1) << subBits
	shards  = 16
)

// histogram counts durations in buckets whose width is 3 % of their value. Callers of different shards do not
// disturb each other.
type histogram struct {
	shard [shards]struct {
		n [buckets]atomic.Uint32
		_ [64]byte
	}
}

func (h *histogram) add(caller int, d time.Duration) {
	h.shard[caller%shards].n[bucket(uint64(max(d, 0)))].Add(1)
}

// bucket is the index of the bucket of v.
func bucket(v uint64) int {
	if v < 1<<subBits {
		return int(v)
	}
	e := bits.Len64(v) - subBits - 1
	return e<<subBits + int(v>>e)
}

// middle is a value in the middle of bucket i.
func middle(i int) float64 {
	if i < 2<<subBits {
		return float64(i)
	}
	e := i>>subBits - 1
	low := uint64(i-e<<subBits) << e
	return float64(low) + float64(uint64(1)<<e)/2
}

// quantiles returns the values below which the given parts of the samples lie, and how many samples there are.
func (h *histogram) quantiles(parts ...float64) (at []float64, samples int64) {
	var sum [buckets]int64
	for s := range h.shard {
		for i := range sum {
			c := int64(h.shard[s].n[i].Load())
			sum[i] += c
			samples += c
		}
	}
	for _, p := range parts {
		left, v := int64(p*float64(samples)), 0.0
		for i, c := range sum {
			if left -= c; left < 0 {
				v = middle(i)
				break
			}
		}
		at = append(at, v)
	}
	return at, samples
}
