package load

import (
	"runtime"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// usage is what this process has used so far.
type usage struct {
	at             time.Time
	cpu            time.Duration
	writes, reads  int64 // system calls
	mallocs, bytes uint64
}

// before and after differ in the order: collecting the memory statistics stops the world and belongs to neither. c is
// asked for its system calls if it counts them; it may be nil.
func before(c contend.Client) usage {
	u := memory()
	u.writes, u.reads = callsOf(c)
	u.cpu, u.at = processCPU(), time.Now()
	return u
}

func after(c contend.Client) usage {
	at, cpu := time.Now(), processCPU()
	writes, reads := callsOf(c)
	u := memory()
	u.at, u.cpu, u.writes, u.reads = at, cpu, writes, reads
	return u
}

// callsOf are the writes and reads of a client so far: those that it counts itself, since a system need not count
// those with other system calls than read and write; else those of the process, where the system tells.
func callsOf(c contend.Client) (writes, reads int64) {
	if counting, is := c.(contend.Counting); is {
		return counting.Calls()
	}
	return calls()
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
