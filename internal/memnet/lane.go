package memnet

import (
	"io"
	"sync"
	"syscall"
	"time"
)

// lane is one direction. Bytes move through it in three steps: accepted (a Write counted them), arrived (delay
// and drip have let them through) and taken (a Read returned them). All of it is guarded by the pair's lock.
type lane struct {
	p        *pair
	buf      []byte // buf[head:] is accepted and not taken
	head     int
	arrived  int     // of those, how many have arrived
	onWay    []chunk // the others, and the end mark, oldest first
	size     int     // of the buffer; negative = none
	wanted   int     // bytes that parked readers ask for
	accepted int64   // since creation
	taken    int64   // since creation
	writes   int     // Write calls that were given a non-empty slice

	writing    bool  // a Write is at work; others wait for their turn
	writeErr   error // why nothing more is accepted; nil while open
	readerGone bool  // the reading end was closed
	ended      bool  // an end mark was put behind the last byte
	endArrived bool
	endErr     error // what a reader gets at the end: io.EOF or a reset

	faults    faults
	lastDrip  time.Time
	timer     *time.Timer
	timerGen  int
	readable  *sync.Cond
	writeable *sync.Cond
}

// chunk is a number of bytes, or the end mark, that arrives at a time.
type chunk struct {
	n   int
	end bool
	due time.Time
}

func (l *lane) init(p *pair, size int) {
	l.p, l.size, l.faults = p, size, noFaults
	l.readable = sync.NewCond(&p.mu.Mutex)
	l.writeable = sync.NewCond(&p.mu.Mutex)
}

func (l *lane) wakeLocked() {
	l.readable.Broadcast()
	l.writeable.Broadcast()
}

func (l *lane) heldLocked() int { return len(l.buf) - l.head }

// roomLocked is how many bytes may be accepted now.
func (l *lane) roomLocked() int {
	size := l.size
	if size < 0 {
		size = l.wanted
	}
	return size - l.heldLocked()
}

// acceptLocked takes as many bytes of p as buffer and armed offsets allow, at least one when there is room, and
// fires a cut that becomes due. It returns how many.
func (l *lane) acceptLocked(p []byte) int {
	f := &l.faults
	n := len(p)
	if f.cutAt >= 0 {
		n = min(n, int(f.cutAt-l.accepted))
	}
	switch {
	case f.swallowAt >= 0 && l.accepted >= f.swallowAt:
		// Accepted and gone.
	default:
		if f.swallowAt >= 0 {
			n = min(n, int(f.swallowAt-l.accepted))
		}
		if n = min(n, l.roomLocked()); n <= 0 {
			return 0
		}
		if l.head > 0 && len(l.buf)+n > cap(l.buf) {
			l.buf = l.buf[:copy(l.buf, l.buf[l.head:])]
			l.head = 0
		}
		l.buf = append(l.buf, p[:n]...)
		l.sendLocked(chunk{n: n})
	}
	l.accepted += int64(n)
	if f.cutAt >= 0 && l.accepted >= f.cutAt {
		l.p.dieLocked(f.cut)
	}
	return n
}

// takeLocked moves arrived bytes to p, not beyond an armed stall.
func (l *lane) takeLocked(p []byte) int {
	n := min(len(p), l.readyLocked())
	if n <= 0 {
		return 0
	}
	copy(p, l.buf[l.head:l.head+n])
	l.head += n
	l.arrived -= n
	l.taken += int64(n)
	if l.head == len(l.buf) {
		l.buf, l.head = l.buf[:0], 0
	}
	l.writeable.Broadcast()
	return n
}

// readyLocked is how many bytes a reader may take now.
func (l *lane) readyLocked() int {
	n := l.arrived
	if s := l.faults.stallAt; s >= 0 {
		n = min(n, max(0, int(s-l.taken)))
	}
	return n
}

// endSeenLocked says whether the end mark has reached the reading side; a stall holds it back as it does bytes.
func (l *lane) endSeenLocked() bool {
	s := l.faults.stallAt
	return l.endArrived && (s < 0 || l.accepted < s)
}

// atEndLocked is the error of a reader that has taken everything, or nil while more may come.
func (l *lane) atEndLocked() error {
	if l.heldLocked() > 0 || !l.endSeenLocked() {
		return nil
	}
	return l.endErr
}

// endLocked puts the end mark behind what was accepted, once.
func (l *lane) endLocked(err error) {
	if l.ended {
		return
	}
	l.ended, l.endErr = true, err
	l.sendLocked(chunk{end: true})
}

// dieLocked ends the lane for both its sides. Bytes held back by a stall can never arrive any more.
func (l *lane) dieLocked(how Cut) {
	var readErr, writeErr error = io.EOF, syscall.EPIPE
	if how.Reset {
		readErr, writeErr = syscall.ECONNRESET, syscall.ECONNRESET
	}
	if l.writeErr == nil {
		l.writeErr = writeErr
	}
	switch s := l.faults.stallAt; {
	case how.Drop:
		l.discardLocked(0)
	case s >= 0:
		l.discardLocked(max(0, int(s-l.taken)))
	}
	l.faults.stallAt = -1
	if !l.ended {
		l.ended, l.endErr = true, readErr
		l.onWay = append(l.onWay, chunk{end: true, due: time.Now()})
	} else if how.Reset {
		l.endErr = readErr
	}
	l.advanceLocked()
	l.wakeLocked()
}

// discardLocked forgets all but the first keep of the bytes held; an end mark stays.
func (l *lane) discardLocked(keep int) {
	if l.heldLocked() <= keep {
		return
	}
	l.buf = l.buf[:l.head+keep]
	l.arrived = min(l.arrived, keep)
	left := keep - l.arrived
	kept := l.onWay[:0]
	for _, c := range l.onWay {
		if !c.end {
			c.n = min(c.n, left)
			left -= c.n
		}
		if c.end || c.n > 0 {
			kept = append(kept, c)
		}
	}
	l.onWay = kept
}
