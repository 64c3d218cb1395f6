package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	readSize  = 32 << 10 // bytes of one read
	held      = 64 << 10 // bytes that a lane keeps before it stops reading
	heldDelay = 8 << 20  // the same, while it delays
)

// ending is what a lane tells its dst behind the last byte of the queue.
type ending uint8

const (
	open     ending = iota // there is more to come
	withFIN                // a FIN
	withRST                // a RST
	silently               // nothing
)

// chunk is what one read brought.
type chunk struct {
	b   []byte
	due time.Time
}

// lane is one direction of a link: a reader that fills the queue from src, and a writer that empties it into dst.
type lane struct {
	link     *Link
	back     *lane // the other direction
	src, dst *net.TCPConn
	total    *atomic.Int64 // of the proxy

	mu struct {
		sync.Mutex
		changed chan struct{} // closed and made anew at each change of what follows

		queue     []chunk
		queued    int   // bytes
		forwarded int64 // bytes
		end       ending
		endDue    time.Time
		deaf      bool // the reader drops what it reads, and its end tells nothing
		voided    bool // nothing is ever written any more
		srcGone   bool // a write to it has failed
		over      bool // the writer has ended

		frozen  bool
		perDrip int // bytes; 0: all
		every   time.Duration
		next    time.Time // of the drip
		delay   time.Duration
		limit   int64 // of forwarded; negative: none
	}
}

func newLane(l *Link, src, dst *net.TCPConn, total *atomic.Int64) *lane {
	n := &lane{link: l, src: src, dst: dst, total: total}
	n.mu.changed = make(chan struct{})
	n.mu.limit = -1
	return n
}

// change runs f under the lock and wakes reader and writer.
func (n *lane) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.mu.changed)
	n.mu.changed = make(chan struct{})
}

// sent is how many bytes dst was handed.
func (n *lane) sent() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.forwarded
}

func (n *lane) freeze(on bool) { n.change(func() { n.mu.frozen = on && !n.mu.voided }) }

func (n *lane) drip(bytes int, every time.Duration) {
	n.change(func() { n.mu.perDrip, n.mu.every, n.mu.next = max(bytes, 0), every, time.Time{} })
}

func (n *lane) holdBack(by time.Duration) { n.change(func() { n.mu.delay = max(by, 0) }) }

func (n *lane) cutAfter(limit int64) { n.change(func() { n.mu.limit = limit }) }

// deafen lets the queue be the last that dst gets: src is gone, and dst is not to know.
func (n *lane) deafen() {
	n.change(func() { n.mu.deaf, n.mu.end = true, silently })
}

// finish lets a FIN follow the queue and drops what comes later.
func (n *lane) finish() {
	late := false
	n.change(func() {
		if n.mu.deaf = true; n.mu.end != withRST && !n.mu.voided {
			n.mu.end, late = withFIN, n.mu.over
		}
	})
	if late {
		_ = n.dst.CloseWrite() // the writer may have ended silently
	}
}

// void drops the queue and what comes later, and stops a write that does not get on.
func (n *lane) void(end ending) {
	over := false
	n.change(func() {
		over = n.mu.over
		n.mu.queue, n.mu.queued = nil, 0
		n.mu.deaf, n.mu.voided, n.mu.frozen, n.mu.end = true, true, false, end
		n.mu.limit, n.mu.endDue = -1, time.Time{}
	})
	_ = n.dst.SetWriteDeadline(time.Unix(1, 0)) // fails on a closed socket only
	if over && end == withFIN {
		_ = n.dst.CloseWrite() // the writer may have ended silently
	}
}

// read fills the queue until src has ended.
func (n *lane) read() {
	buf := make([]byte, readSize)
	for {
		n.awaitRoom()
		got, err := n.src.Read(buf)
		n.take(buf[:got], err)
		if err != nil {
			return
		}
	}
}

func (n *lane) awaitRoom() {
	for {
		n.mu.Lock()
		bound := held
		if n.mu.delay > 0 {
			bound = heldDelay
		}
		ok, changed := n.mu.deaf || n.mu.queued < bound, n.mu.changed
		n.mu.Unlock()
		if ok {
			return
		}
		<-changed
	}
}

// take queues what a read returned.
func (n *lane) take(b []byte, err error) {
	n.change(func() {
		if n.mu.deaf {
			return
		}
		due := time.Now().Add(n.mu.delay)
		if len(b) > 0 {
			n.mu.queue = append(n.mu.queue, chunk{append([]byte(nil), b...), due})
			n.mu.queued += len(b)
		}
		if err != nil {
			n.mu.endDue = due
			if n.mu.end = withRST; errors.Is(err, io.EOF) && !n.mu.srcGone {
				n.mu.end = withFIN
			}
		}
	})
}
