package beanstalkd

import (
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// maxTorn is how many times in a row a reserve may be handed a job that does not arrive whole. A connection may die in
// the middle of a body for other reasons, so it is more than one. It need not be the same job: other consumers take
// such jobs too, and put them back in another order.
const maxTorn = 3

// watchful is the protocol of a Consumer: it tells the link when a job is announced, and when it is whole.
type watchful struct {
	protocol
	link      *link
	announced bool
}

func newWatchful(l *link) fdengine.Protocol {
	return &watchful{protocol: protocol{scan: beanstalk.NewScanner(beanstalk.Limits{})}, link: l}
}

// Next implements fdengine.Protocol.
func (w *watchful) Next(buf []byte) (n, need int, kind fdengine.Kind, err error) {
	n, need, kind, err = w.protocol.Next(buf)
	switch {
	case n > 0:
		w.announced = false
		w.link.whole()
	case len(buf) > 0:
		if !w.announced {
			var r beanstalk.Reply
			if r, w.announced = beanstalk.Begins(buf); w.announced && r.Word == beanstalk.Reserved {
				w.link.announce(r.Number)
			}
		}
		if err == nil {
			w.link.partial()
		}
	}
	return n, need, kind, err
}

// announce notes that the server hands out a job whose body has not arrived.
func (l *link) announce(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.tornID = id
	l.mu.torn++
}

// whole notes that a reply arrived behind all.
func (l *link) whole() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.tornID, l.mu.torn = 0, 0
}

// partial starts the time for the rest of a reply anew, for a command that is not bounded otherwise: what it waits
// for has come, so the server has no reason to be silent.
func (l *link) partial() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.busy && l.mu.bound == 0 && l.rest > 0 {
		l.mu.due = time.Now().Add(l.rest)
		l.timer.Reset(l.rest)
	}
}

// tornLocked is the error of the next lease when the command under way was handed torn jobs too often; else nil.
func (l *link) tornLocked() error {
	if l.mu.torn < maxTorn {
		return nil
	}
	return pool.Permanent(&TornError{ID: l.mu.tornID, Times: l.mu.torn, Cause: l.mu.why})
}
