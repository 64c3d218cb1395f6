package pool

// Stats is a snapshot of a pool. The counts of uint64 only grow.
type Stats struct {
	Open    int // Dialing + Idle + Leased + those being closed; at most Options.Size
	Dialing int // places of Leases without a connection yet, backoff included, and of abandoned dials
	Idle    int
	Leased  int // with holders, or being examined for or after a loan
	Waiting int // Leases waiting for a place
	Fences  int // sessions the next handshake has to fence

	Dials         uint64           // started
	DialsCanceled uint64           // ended by the ctx of their Lease, or by Close
	DialFailures  map[Phase]uint64 // the others that failed; zero counts are left out
	Reuses        uint64           // loans of an idle connection
	Removed       map[Reason]uint64
	Handoffs      uint64 // done by OnPut
	Ignored       uint64 // Puts and Removes of what was not on loan: faults of a caller
	FailedRounds  int    // failed rounds of dials since the last one that succeeded
}

type counters struct {
	dials, canceled, reuses, handoffs, ignored uint64

	failures [phases]uint64
	removed  [reasons]uint64
}

// Stats returns a consistent snapshot.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := &p.mu.count
	return Stats{
		Open: p.mu.open, Dialing: p.mu.dialing, Idle: len(p.mu.idle),
		Leased:  p.mu.open - p.mu.dialing - p.mu.closing - len(p.mu.idle),
		Waiting: p.mu.waiters.Len(), Fences: len(p.mu.fences),
		Dials: n.dials, DialsCanceled: n.canceled, DialFailures: nonZero[Phase](n.failures[:]),
		Reuses: n.reuses, Removed: nonZero[Reason](n.removed[:]),
		Handoffs: n.handoffs, Ignored: n.ignored, FailedRounds: p.mu.failures,
	}
}

func nonZero[K ~uint8](counts []uint64) map[K]uint64 {
	m := map[K]uint64{}
	for k, n := range counts {
		if n > 0 {
			m[K(k)] = n
		}
	}
	return m
}
