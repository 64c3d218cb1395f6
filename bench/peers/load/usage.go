package load

import (
	"runtime"
	"time"
)

// usage is what this process has used so far.
type usage struct {
	at             time.Time
	cpu            time.Duration
	writes, reads  int64 // system calls
	mallocs, bytes uint64
}

// before and after differ in the order: collecting the memory statistics stops the world and belongs to neither.
func before() usage {
	u := memory()
	u.writes, u.reads = calls()
	u.cpu, u.at = processCPU(), time.Now()
	return u
}

func after() usage {
	at, cpu := time.Now(), processCPU()
	writes, reads := calls()
	u := memory()
	u.at, u.cpu, u.writes, u.reads = at, cpu, writes, reads
	return u
}

func memory() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{mallocs: m.Mallocs, bytes: m.TotalAlloc}
}

// per fills r with what was used between two moments, per op.
func per(r *Result, ops int64, from, to usage) {
	r.Ops = ops
	r.Seconds = to.at.Sub(from.at).Seconds()
	if ops == 0 {
		return
	}
	n := float64(ops)
	r.CPU = float64(to.cpu-from.cpu) / n
	r.Rate = n / r.Seconds
	r.Allocs = float64(to.mallocs-from.mallocs) / n
	r.Bytes = float64(to.bytes-from.bytes) / n
	if w := to.writes - from.writes; w > 0 {
		r.PerWrite = n / float64(w)
	}
	if rd := to.reads - from.reads; rd > 0 {
		r.PerRead = n / float64(rd)
	}
}
