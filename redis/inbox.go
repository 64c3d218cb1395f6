package redis

import (
	"context"
	"sync"
	"time"
)

// Message is what a Subscription receives: a published message, or word that some are missing.
type Message struct {
	Channel string
	Pattern string // the pattern that matched, for a PSubscribe; else empty
	Payload []byte // the receiver's own
	Missed  *Missed
}

// Missed says that at this point of a subscription messages are missing, or may be. One of Dropped and From is set,
// or both.
type Missed struct {
	Dropped int // messages that did not fit into the buffer; exact
	// The connection was lost: what was published between From, when the server was last heard, and To, when it had
	// all subscriptions again, has not arrived, or not all of it.
	From, To time.Time
	Cause    error // what ended the connection
}

// add makes one of two that follow each other.
func (m *Missed) add(n Missed) {
	m.Dropped += n.Dropped
	if m.From.IsZero() {
		m.From = n.From
	}
	if !n.To.IsZero() {
		m.To, m.Cause = n.To, n.Cause
	}
}

// inbox is the bounded buffer between one reader goroutine that puts and any number of receivers.
type inbox struct {
	limit int           // messages
	block bool          // put waits for room instead of dropping
	more  chan struct{} // cap 1: there is something to receive
	room  chan struct{} // cap 1: something was received
	over  chan struct{} // closed by end
	mu    struct {
		sync.Mutex
		queue  []Message // words of missing ones included
		head   int       // in queue
		held   int       // messages in queue
		missed *Missed   // what is missing behind the queue
		err    error     // why it ended
	}
}

func newInbox(limit int, block bool) *inbox {
	return &inbox{limit: limit, block: block, more: make(chan struct{}, 1), room: make(chan struct{}, 1), over: make(chan struct{})}
}

// put adds a message, or drops it, or waits for room, as was chosen.
func (b *inbox) put(m Message) {
	for {
		b.mu.Lock()
		switch {
		case b.mu.err != nil:
			b.mu.Unlock()
			return
		case b.mu.held < b.limit:
			if b.mu.missed != nil {
				b.mu.queue = append(b.mu.queue, Message{Missed: b.mu.missed})
				b.mu.missed = nil
			}
			b.mu.queue = append(b.mu.queue, m)
			b.mu.held++
			b.mu.Unlock()
			signal(b.more)
			return
		case !b.block:
			b.missLocked(Missed{Dropped: 1})
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		select {
		case <-b.room:
		case <-b.over:
		}
	}
}

// miss notes that something is missing behind what was put.
func (b *inbox) miss(m Missed) {
	b.mu.Lock()
	b.missLocked(m)
	b.mu.Unlock()
	signal(b.more)
}

func (b *inbox) missLocked(m Missed) {
	if b.mu.missed == nil {
		b.mu.missed = new(Missed)
	}
	b.mu.missed.add(m)
}

// receive takes the oldest; when the inbox has ended and is empty, it returns the reason.
func (b *inbox) receive(ctx context.Context) (Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Message{}, err
		}
		b.mu.Lock()
		m, ok := b.takeLocked()
		rest, err := len(b.mu.queue) > b.mu.head || b.mu.missed != nil, b.mu.err
		b.mu.Unlock()
		if ok {
			signal(b.room)
			if rest {
				signal(b.more)
			}
			return m, nil
		}
		if err != nil {
			return Message{}, err
		}
		select {
		case <-b.more:
		case <-b.over:
		case <-ctx.Done():
		}
	}
}

func (b *inbox) takeLocked() (m Message, ok bool) {
	if b.mu.head == len(b.mu.queue) {
		if b.mu.missed == nil {
			return m, false
		}
		m.Missed, b.mu.missed = b.mu.missed, nil
		return m, true
	}
	m = b.mu.queue[b.mu.head]
	b.mu.queue[b.mu.head] = Message{}
	b.mu.head++
	if m.Missed == nil {
		b.mu.held--
	}
	if b.mu.head == len(b.mu.queue) {
		b.mu.queue, b.mu.head = b.mu.queue[:0], 0
	} else if b.mu.head > 64 && b.mu.head > len(b.mu.queue)/2 {
		n := copy(b.mu.queue, b.mu.queue[b.mu.head:])
		clear(b.mu.queue[n:])
		b.mu.queue, b.mu.head = b.mu.queue[:n], 0
	}
	return m, true
}

// end makes receive return err once the rest is received, and put do nothing. The first reason stays.
func (b *inbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.err == nil {
		b.mu.err = err
		close(b.over)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
