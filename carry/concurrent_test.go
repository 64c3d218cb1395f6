package carry

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// caller is one call, as an engine has it: a ticket and where its outcome arrives.
type caller struct {
	ticket Ticket[*caller]
	ready  chan struct{} // cap 1: a second outcome finds it full
	id     int64         // of the command at hand
	gone   bool          // it withdrew
	clean  bool          // the reader delivered
}

// traffic is a log with everybody at work on it: submitters, a writer, a reader per session, a sweeper.
type traffic struct {
	t     *testing.T
	l     Log[*caller]
	now   atomic.Int64
	wake  chan struct{} // there may be something to write
	sweep chan struct{}

	accepted, delivered, ended, withdrawn atomic.Int64
	twice, stranger                       atomic.Int64
}

// finish tells the owner. Ticketless owners only count.
func (x *traffic) finish(c *caller, clean bool) {
	if c == nil {
		return
	}
	if c.gone {
		x.stranger.Add(1)
	}
	c.clean = clean
	select {
	case c.ready <- struct{}{}:
	default:
		x.twice.Add(1)
	}
}

// told collects under the lock; the owners hear of it when tell runs, without the lock.
type told struct{ owners []*caller }

func (h *told) end(e End[*caller]) { h.owners = append(h.owners, e.Owner) }

func (x *traffic) tell(h *told) {
	for _, c := range h.owners {
		x.ended.Add(1)
		x.finish(c, false)
	}
	h.owners = nil
}

func (x *traffic) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// submit runs n commands one after the other and withdraws some of them.
func (x *traffic) submit(seed uint64, n int, s *Stream[*caller]) {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := &caller{ready: make(chan struct{}, 1)}
	enc := make([]byte, BigRequest+4000)
	for i := range n {
		r := Record[*caller]{Owner: c, Stream: s, Frames: 1, Budget: uint16(rng.IntN(3)), Class: Class(rng.IntN(2))}
		switch rng.IntN(10) {
		case 0:
			r.Frames = 0
		case 1:
			r.SettleBy = x.now.Load() + int64(rng.IntN(40))
		}
		size := 10 + rng.IntN(60)
		if rng.IntN(30) == 0 {
			size = BigRequest + rng.IntN(4000)
		}
		c.id = int64(seed)<<32 | int64(i)
		r.Route = uint64(c.id)
		r.Attach(&c.ticket)
		own := append([]byte(nil), enc[:size]...)
		x.l.Lock()
		if s != nil && s.Broken() {
			s.Reset()
		}
		x.l.Append(&r, own)
		x.l.Unlock()
		x.accepted.Add(1)
		x.signal()
		if rng.IntN(4) == 0 {
			for range rng.IntN(20) {
				runtime.Gosched()
			}
			if w := c.ticket.Withdraw(); w.Won {
				x.withdrawn.Add(1)
				c.gone = true
				var h told
				x.l.Lock()
				x.l.Settle(func(*Record[*caller]) bool { return false }, WhyBroken, h.end)
				x.l.Unlock()
				x.tell(&h)
				c = &caller{ready: make(chan struct{}, 1)} // a ghost may point at the old one
				continue
			}
		}
		<-c.ready
		if !c.clean || !c.ticket.Reusable() {
			c = &caller{ready: make(chan struct{}, 1)}
		}
	}
}

// sweeper ends what is too old.
func (x *traffic) sweeper(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-x.sweep:
		}
		var h told
		now := x.now.Add(1)
		x.l.Lock()
		x.l.Settle(func(r *Record[*caller]) bool { return r.SettleBy != 0 && r.SettleBy <= now }, WhyExpired, h.end)
		x.l.Pending(func(r *Record[*caller], _ bool) bool { return r.SettleBy >= 0 })
		x.l.Unlock()
		x.tell(&h)
	}
}

// write is the engine goroutine: sessions one after the other until done, each cut at a random place.
func (x *traffic) write(done <-chan struct{}) {
	rng := rand.New(rand.NewPCG(7, 7))
	for {
		wire := make(chan int, 1<<16) // how many replies come for each span
		var reader sync.WaitGroup
		reader.Go(func() { x.read(wire) })
		span, over := x.session(rng, wire, done)
		close(wire)
		reader.Wait()
		var h told
		x.l.Lock()
		d := Death[*caller]{Now: x.now.Load(), Last: span, Written: span.Size}
		if rng.IntN(2) == 0 {
			d.Written = 0 // the last span never reached the wire
		}
		x.l.Cut(d, h.end)
		err := x.l.Check()
		x.l.Unlock()
		x.tell(&h)
		require.NoError(x.t, err)
		if over {
			return
		}
	}
}

// session writes some spans and returns the last one, of which the peer has seen nothing.
func (x *traffic) session(rng *rand.Rand, wire chan<- int, done <-chan struct{}) (Span[*caller], bool) {
	for spans := 1 + rng.IntN(60); ; {
		x.l.Lock()
		x.l.Due(x.now.Load())
		before, _ := x.l.InFlight()
		span, ok := x.l.Claim(1+rng.IntN(200), 256<<10, false)
		after, _ := x.l.InFlight()
		x.l.Unlock()
		if !ok {
			select {
			case <-x.wake:
				continue
			case <-done:
				return span, true
			}
		}
		if spans--; spans == 0 {
			return span, false
		}
		var h told
		x.l.Lock()
		x.l.Quiet(span, span.Size, func(r *Record[*caller]) { h.owners = append(h.owners, r.Owner); r.Owner = nil })
		x.l.Written()
		x.l.Unlock()
		x.tell(&h)
		_ = before
		_ = after
		wire <- span.Commands
		if spans%4 == 0 {
			select {
			case x.sweep <- struct{}{}:
			default:
			}
		}
	}
}

// read answers what was written: everything that expects a reply gets one, one in nine is a refusal.
func (x *traffic) read(wire <-chan int) {
	rng := rand.New(rand.NewPCG(9, 9))
	var c Chunk[*caller]
	for n := range wire {
		x.l.Lock()
		x.l.Begin(&c)
		x.l.Unlock()
		for range n {
			r := c.Peek()
			if r == nil {
				break // those without reply are acked by the log itself
			}
			x.reply(&c, r, rng.IntN(9) == 0)
		}
		x.l.Lock()
		x.l.End(&c)
		x.l.Unlock()
		x.signal()
	}
}

func (x *traffic) reply(c *Chunk[*caller], r *Record[*caller], refused bool) {
	var h told
	switch {
	case !r.Decide():
		if !r.NoReply() && r.Held() {
			x.l.Lock()
			if refused {
				x.l.GhostRefused(r, x.now.Load())
			} else {
				x.l.Executed(r, h.end)
			}
			x.l.Unlock()
		}
		c.Take()
	case refused && !r.NoReply():
		owner := r.Owner
		enc := c.Encoded(r)
		r.Refused(false)
		x.l.Lock()
		ok, left := x.l.Refuse(r, enc, nil, x.now.Load()+2, h.end)
		x.l.Unlock()
		switch {
		case left:
			x.ended.Add(1)
			c.Take()
			x.finish(owner, false)
		case ok:
			c.Take()
		default:
			x.deliver(c, r)
		}
	default:
		if !r.NoReply() && r.Held() {
			x.l.Lock()
			x.l.Executed(r, h.end)
			x.l.Unlock()
		}
		x.deliver(c, r)
	}
	x.tell(&h)
}

func (x *traffic) deliver(c *Chunk[*caller], r *Record[*caller]) {
	owner := r.Owner
	if owner != nil && uint64(owner.id) != r.Route {
		x.stranger.Add(1)
	}
	r.Owner = nil
	r.Settle()
	c.Take()
	x.delivered.Add(1)
	x.finish(owner, true)
}

// Covers: E-3, E-43, A-7
func TestEveryCommandEndsOnceUnderConcurrentSubmitWithdrawReadSweepAndCut(t *testing.T) {
	x := &traffic{t: t, wake: make(chan struct{}, 1), sweep: make(chan struct{}, 1)}
	done := make(chan struct{})
	var submitters, rest sync.WaitGroup
	var streams [2]Stream[*caller]
	for i := range 8 {
		submitters.Go(func() {
			var s *Stream[*caller]
			if i < 4 {
				s = &streams[i%2]
			}
			x.submit(uint64(i), 3000, s)
		})
	}
	rest.Go(func() { x.write(done) })
	rest.Go(func() { x.sweeper(done) })
	rest.Go(func() { // keeps time going while all wait for a backoff or an expiry
		for {
			select {
			case <-done:
				return
			default:
				x.now.Add(1)
				x.signal()
				select {
				case x.sweep <- struct{}{}:
				default:
				}
				runtime.Gosched()
			}
		}
	})
	submitters.Wait()
	close(done)
	rest.Wait()

	require.Zero(t, x.twice.Load(), "outcomes that came twice")
	require.Zero(t, x.stranger.Load(), "outcomes that came to the wrong caller or one who had left")
	require.Equal(t, x.accepted.Load(), x.delivered.Load()+x.ended.Load()+x.withdrawn.Load())
	require.Positive(t, x.withdrawn.Load())
	require.Positive(t, x.ended.Load())
	require.NoError(t, x.l.Check())
	x.l.Settle(func(*Record[*caller]) bool { t.Error("somebody still waits"); return true }, WhyAsked, func(End[*caller]) {})
}
