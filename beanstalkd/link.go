package beanstalkd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/pool"
)

// link is the Leaser of a Consumer's engine. It remembers the connection that is lent, so that it can be cut; it
// numbers the connections, and lends none to a command for a job that was reserved on an earlier one, nor to a reserve that
// is handed torn jobs again and again; it watches over the time of the one command that is under way.
type link struct {
	pool *pool.Pool
	// timer fires at mu.due or earlier. One for all commands.
	timer *time.Timer
	rest  time.Duration // for the rest of a reply that has begun, when nothing else bounds it; 0 = none

	mu struct {
		sync.Mutex
		conn    *pool.Conn    // that is lent; nil: none
		epoch   uint64        // of conn, or of the last one
		lost    chan struct{} // closed when the reservations of epoch are lost
		gone    bool          // it is closed
		watched []string      // restored by the handshake

		busy  bool          // a command is under way
		needs uint64        // the epoch it must go out in; 0 = any
		bound time.Duration // for its reply, on each connection; 0 = none
		due   time.Time     // zero = not running
		late  bool          // it ran out

		tornID uint64 // the job whose announcement was the last thing received
		torn   int    // times in a row, by the command under way; see torn.go
		why    error  // the last connection was removed
	}
}

func newLink(watched []string) *link {
	l := new(link)
	l.mu.watched = slices.Clone(watched)
	l.mu.gone = true
	l.timer = time.AfterFunc(time.Hour, l.expire)
	l.timer.Stop()
	return l
}

// Lease implements pool.Leaser. The time of the command under way starts here; if it must go out on an earlier
// connection it fails.
//
// That is all it takes to keep it off other connections: begin has found the earlier one in place, and the engine
// gives that back before it leases.
func (l *link) Lease(ctx context.Context) (*pool.Conn, error) {
	l.mu.Lock()
	stale, torn := l.mu.needs != 0, l.tornLocked()
	l.mu.Unlock()
	switch {
	case stale:
		return nil, pool.Permanent(errLost)
	case torn != nil:
		return nil, torn
	}
	c, err := l.pool.Lease(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.mu.conn, l.mu.gone = c, false
	l.mu.epoch++
	l.mu.lost = make(chan struct{})
	l.armLocked()
	l.mu.Unlock()
	return c, nil
}

// Put implements pool.Leaser. A connection that has reserved jobs is not lent to anyone else.
func (l *link) Put(c *pool.Conn) { l.Remove(c, nil) }

// Remove implements pool.Leaser.
func (l *link) Remove(c *pool.Conn, why error) {
	l.mu.Lock()
	if l.mu.conn == c {
		l.mu.conn = nil
		l.loseLocked()
		l.mu.due, l.mu.why = time.Time{}, why
	}
	l.mu.Unlock()
	l.pool.Remove(c, why)
}

// loseLocked tells that the reservations of this epoch are gone.
func (l *link) loseLocked() {
	if !l.mu.gone {
		l.mu.gone = true
		close(l.mu.lost)
	}
}

// cut closes the connection, so that the server takes back what is reserved on it and hands out nothing more there.
func (l *link) cut() {
	l.mu.Lock()
	c := l.mu.conn
	l.loseLocked()
	l.mu.Unlock()
	if c != nil {
		_ = c.Abort() // closing reports nothing that could be acted on
	}
}

var errLost = errors.New("beanstalkd: the connection that reserved the job is gone")

// begin announces a command that must go out in the given epoch, 0 for any, and whose reply is waited for no longer
// than bound, 0 for ever. end must follow.
func (l *link) begin(needs uint64, bound time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if needs != 0 && (needs != l.mu.epoch || l.mu.gone) {
		return errLost
	}
	l.mu.busy, l.mu.needs, l.mu.bound, l.mu.late = true, needs, bound, false
	l.mu.tornID, l.mu.torn = 0, 0
	if l.mu.conn != nil {
		l.armLocked()
	}
	return nil
}

// end says whether the connection was cut because the reply was late.
func (l *link) end() (late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.busy, l.mu.needs, l.mu.bound, l.mu.due = false, 0, 0, time.Time{}
	return l.mu.late
}

// armLocked starts the time of the command under way.
func (l *link) armLocked() {
	if l.mu.busy && l.mu.bound > 0 {
		l.mu.due = time.Now().Add(l.mu.bound)
		l.timer.Reset(l.mu.bound)
	}
}

// expire is what the timer runs. It may come late, for a command that has ended.
func (l *link) expire() {
	l.mu.Lock()
	if l.mu.due.IsZero() {
		l.mu.Unlock()
		return
	}
	if left := time.Until(l.mu.due); left > 0 {
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	l.mu.late, l.mu.due = true, time.Time{}
	l.mu.Unlock()
	l.cut()
}

// close stops the timer and tells that all reservations are lost.
func (l *link) close() {
	l.mu.Lock()
	l.mu.due = time.Time{}
	l.loseLocked()
	l.mu.Unlock()
	l.timer.Stop()
}

// held is the epoch of the connection, for a job just reserved on it.
func (l *link) held() (epoch uint64, lost <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.epoch, l.mu.lost
}

// tubes is what to watch on the next connection.
func (l *link) tubes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.watched)
}

// watch notes that the server watches tube now, or does not any more.
func (l *link) watch(tube string, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.watched = slices.DeleteFunc(l.mu.watched, func(t string) bool { return t == tube })
	if on {
		l.mu.watched = append(l.mu.watched, tube)
	}
}
