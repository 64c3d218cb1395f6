package memnet

import "time"

// Lane is a handle on one direction of a Pipe: its counters and its faults. Offsets count bytes of this
// direction since the Pipe was made; a fault armed at an offset that has passed fires at once. A negative offset
// disarms. All methods may be called at any time from any goroutine.
type Lane struct {
	p *pair
	i int
}

// Cut says how a connection dies. The zero value is a close that lets everything through that was accepted.
type Cut struct {
	Reset bool // both ends see ECONNRESET instead of io.EOF and EPIPE
	Drop  bool // what was accepted and not read, in both directions, is lost
}

// faults of one lane; the offsets are -1 when disarmed.
type faults struct {
	cutAt     int64
	cut       Cut
	stallAt   int64
	swallowAt int64
	short     struct {
		n   int
		err error
	}
	delay, drip time.Duration
}

var noFaults = faults{cutAt: -1, stallAt: -1, swallowAt: -1}

func (h *Lane) with(f func(l *lane)) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	l := &h.p.mu.lanes[h.i]
	f(l)
	// Both lanes: a writer of one also waits for the end mark of the other.
	h.p.mu.lanes[0].wakeLocked()
	h.p.mu.lanes[1].wakeLocked()
}

// CutAt kills the connection as soon as k bytes were accepted in this direction. The Write that reaches k
// returns nil when k was its last byte, else the count and the error.
func (h *Lane) CutAt(k int64, how Cut) {
	h.with(func(l *lane) {
		l.faults.cutAt, l.faults.cut = k, how
		if k >= 0 && l.accepted >= k {
			l.p.dieLocked(how)
		}
	})
}

// CutAfter is CutAt counted from the bytes accepted so far; CutAfter(0, how) kills at once.
func (h *Lane) CutAfter(n int64, how Cut) {
	h.with(func(l *lane) {
		l.faults.cutAt, l.faults.cut = l.accepted+n, how
		if n <= 0 {
			l.p.dieLocked(how)
		}
	})
}

// StallAt holds back all bytes from offset k on, and the end mark behind them. They are still accepted while the
// buffer has room.
func (h *Lane) StallAt(k int64) { h.with(func(l *lane) { l.faults.stallAt = max(k, -1) }) }

// Freeze is StallAt the bytes that were read so far: nothing more is delivered, also not what is buffered.
func (h *Lane) Freeze() { h.with(func(l *lane) { l.faults.stallAt = l.taken }) }

// Thaw undoes Freeze and StallAt.
func (h *Lane) Thaw() { h.StallAt(-1) }

// SwallowAt makes a black hole: bytes from offset k on are accepted without limit and never arrive.
func (h *Lane) SwallowAt(k int64) { h.with(func(l *lane) { l.faults.swallowAt = max(k, -1) }) }

// ShortWrites makes each Write accept at most n bytes and then fail with err. A nil err disarms.
func (h *Lane) ShortWrites(n int, err error) {
	h.with(func(l *lane) { l.faults.short.n, l.faults.short.err = n, err })
}

// Delay lets each chunk accepted from now on, and the end mark, arrive d later.
func (h *Lane) Delay(d time.Duration) { h.with(func(l *lane) { l.faults.delay = max(d, 0) }) }

// Drip lets bytes that have not arrived yet arrive one per interval; zero or less lets them run again.
func (h *Lane) Drip(interval time.Duration) {
	h.with(func(l *lane) {
		l.faults.drip = max(interval, 0)
		l.advanceLocked()
	})
}

// SetBuffer resizes the buffer: zero means DefaultBuffer, negative none. What is in it stays.
func (h *Lane) SetBuffer(n int) {
	if n == 0 {
		n = DefaultBuffer
	}
	h.with(func(l *lane) { l.size = n })
}

// Accepted is how many bytes were accepted since creation.
func (h *Lane) Accepted() (n int64) { h.look(func(l *lane) { n = l.accepted }); return n }

// Taken is how many bytes were read since creation.
func (h *Lane) Taken() (n int64) { h.look(func(l *lane) { n = l.taken }); return n }

// Buffered is how many bytes are accepted and not read (swallowed ones are not among them).
func (h *Lane) Buffered() (n int) { h.look(func(l *lane) { n = l.heldLocked() }); return n }

// Writes is how many non-empty Writes were begun.
func (h *Lane) Writes() (n int) { h.look(func(l *lane) { n = l.writes }); return n }

func (h *Lane) look(f func(l *lane)) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	f(&h.p.mu.lanes[h.i])
}
