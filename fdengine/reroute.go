package fdengine

import (
	"errors"
	"sync/atomic"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// fits says whether a record of that many frames can carry what the hint adds.
func (h *Hint) fits(frames int) bool {
	return len(h.Prefix) <= 65535 && h.Frames >= 0 && h.Frames <= 255 && frames+h.Frames <= 65535
}

// Carry is a command on its way from one engine to another: refused with a Reroute verdict, or left over when a
// connection died. It keeps its request bytes, its sends, its maybe bit and its budget. A Rerouter gives it to one
// engine's Adopt or ends it with Fail; the first of the two counts, others do nothing.
// Commands of a Stream are never carries: one engine keeps their order. A redirect is the answer of such a command
// and breaks its Stream; what is left of a Stream after a cut waits for the next connection here.
type Carry struct {
	from *Engine
	away carry.Away[entry]
	hint Hint
	used atomic.Bool
}

// Command is the command itself; do not call its methods.
func (c *Carry) Command() Command { return c.away.Rec.Owner.cmd }

// Route is Spec.Route.
func (c *Carry) Route() uint64 { return c.away.Rec.Route }

// Hint is what the refusal knew; zero for a carry of a dead connection.
func (c *Carry) Hint() Hint { return c.hint }

// Fate is what can be said of the command if it ended now.
func (c *Carry) Fate() carry.Fate { return c.away.Rec.Fate(false) }

// Sends counts its sends so far, Redirects the Reroute verdicts among their answers.
func (c *Carry) Sends() int { return c.away.Rec.Sends() }

// Redirects counts the Reroute verdicts so far.
func (c *Carry) Redirects() int { return c.away.Rec.Hops() }

// Fail ends the command: its error is a *CallError with its fate and err as Cause.
func (c *Carry) Fail(err error) { c.end(nil, err) }

func (c *Carry) end(class, cause error) {
	if !c.used.CompareAndSwap(false, true) {
		return
	}
	x, ok := c.away.End()
	if !ok {
		return // its caller left
	}
	e := c.from
	e.log.Lock()
	e.settled(x.Fate)
	e.log.Unlock()
	e.detach([]carry.End[entry]{x}, class, cause)
}

// Adopt takes commands of this or another engine in, in the order given, before everything that is not sent yet. It
// never blocks and is exempt from the limits. On a closed engine they end with ErrClosed by their fate.
func (e *Engine) Adopt(cs ...*Carry) {
	ws := make([]carry.Away[entry], 0, len(cs))
	var late []*Carry
	l := &e.log
	l.Lock()
	closed := e.state == stateClosed
	for _, c := range cs {
		if c == nil {
			continue
		}
		if closed {
			late = append(late, c)
			continue
		}
		if !c.used.CompareAndSwap(false, true) {
			continue
		}
		if c.from != e {
			c.moveTo(e)
		}
		ws = append(ws, c.away)
	}
	e.rouse()
	l.Splice(ws)
	for i := range ws {
		if at := ws[i].Rec.SettleBy; at != 0 && at < e.nextSettle {
			e.nextSettle = at
		}
	}
	wake := e.unpark()
	l.Unlock()
	if wake {
		e.signal()
	}
	for _, c := range late {
		c.end(e.closedClass(), nil)
	}
}

// moveTo translates the times of the record to the clock of another engine and moves it in the books.
func (c *Carry) moveTo(e *Engine) {
	r := &c.away.Rec
	shift := int64(c.from.base.Sub(e.base))
	r.Start += shift
	if r.SettleBy != 0 {
		r.SettleBy = max(r.SettleBy+shift, 1)
	}
	e.count.Accepted++
	c.from.moved.Add(1)
}

// goElsewhere takes a refused record out of the chunk for the Rerouter.
func (s *session) goElsewhere(rec *carry.Record[entry], v Verdict, ran bool) bool {
	e, l := s.e, &s.e.log
	enc := s.chunk.Encoded(rec)
	l.Lock()
	if e.state == stateClosed {
		l.Unlock()
		return false
	}
	rec.Refused(ran)
	gone := leaving(rec)
	away, ok := l.Leave(rec, enc)
	if ok {
		c := &Carry{from: e, away: away, hint: v.Hint}
		c.away.Redirect(v.Hint.Prefix, v.Hint.Frames)
		c.hint.Prefix = nil
		e.rerouting = append(e.rerouting, c)
		e.count.Redirects++
		e.unpark()
	}
	l.Unlock()
	s.advance(true)
	if !ok {
		s.left(gone)
		return true
	}
	e.signal()
	return true
}

var errRedirected = errors.New("fdengine: the server refused it with a redirect")

// reroute hands refused commands to the Rerouter. Engine goroutine.
func (e *Engine) reroute() {
	e.log.Lock()
	cs := e.rerouting
	e.rerouting = nil
	e.log.Unlock()
	e.handOver(errRedirected, cs)
}

// evict hands everything that is still to be sent to the Rerouter, after a connection died.
func (e *Engine) evict(why error) {
	e.log.Lock()
	ws := e.log.Evict()
	e.letIn()
	e.log.Unlock()
	cs := make([]*Carry, len(ws))
	for i := range ws {
		cs[i] = &Carry{from: e, away: ws[i]}
	}
	e.handOver(why, cs)
}

func (e *Engine) handOver(why error, cs []*Carry) {
	if len(cs) == 0 {
		return
	}
	err := panics.Isolate("Reroute", func() error {
		e.opt.Rerouter.Reroute(why, cs)
		return nil
	})
	if err != nil {
		e.caught.Add(1)
		e.say("caught", err)
		for _, c := range cs {
			c.Fail(err)
		}
	}
}
