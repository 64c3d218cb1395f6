package pool

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/panics"
)

// Leaser lends connections one holder at a time. Pool is the usual one; spilling from one pool to a second is
// a ten-line Leaser on top (see the example). The engine keeps a lease until Put or Remove and calls exactly
// one of them, once.
type Leaser interface {
	// Lease returns a connection that has answered one round trip on its handshake, dialing when none is idle.
	// It blocks at most until ctx ends or the dial timeout passes. Errors: *DialError; ErrClosed; ErrFull. An
	// error for which IsPermanent reports true will not heal by dialing again (wrong password, bad certificate).
	Lease(ctx context.Context) (*Conn, error)
	// Put takes back a connection that ended cleanly: at a frame boundary, nothing unanswered.
	Put(c *Conn)
	// Remove takes back a connection that must carry no further command and closes it. why is kept for Stats
	// and, unless the peer closed the connection itself, makes the next dial fence the old session (Dial.Fence).
	Remove(c *Conn, why error)
}

// Conn is one loan of a connection: each Lease returns a new one, the holder drops it at Put or Remove. The embedded net.Conn is the stream to read and write (TLS when the pool
// speaks TLS); Abort closes the raw socket below it.
type Conn struct {
	net.Conn
	raw     net.Conn
	Session any    // what the binding's handshake learned (for redis: the client id); opaque here
	Unread  []byte // bytes read past the last handshake reply; the holder parses them first and sets nil
	created time.Time
	handoff *atomic.Bool // of the connection, not of the loan: shared by its successive Conns
	exact   bool
	direct  *direct // nil when package net moves the bytes; of the connection

	owner    *Pool     // nil when a NewConn
	since    time.Time // when it became idle; guarded by owner.mu
	returned bool      // this loan is over; guarded by owner.mu
}

// NewConn wraps stream, whose raw socket is raw (the same value when there is no TLS), as a Conn born at
// created. For Leasers other than Pool, and tests.
func NewConn(stream, raw net.Conn, created time.Time) *Conn {
	return &Conn{
		Conn: stream, raw: raw, created: created,
		exact: stream == raw && exactWrite(raw), handoff: new(atomic.Bool), direct: directFor(stream, raw),
	}
}

// lend starts another loan of c. Every loan has a Conn of its own, so that a Put or Remove by an earlier holder
// is recognised even when the connection is out again.
func (c *Conn) lend() *Conn {
	return &Conn{
		Conn: c.Conn, raw: c.raw, Session: c.Session, created: c.created,
		handoff: c.handoff, exact: c.exact, direct: c.direct, owner: c.owner,
	}
}

// Owner is the Pool that lent c, as a Leaser for Put and Remove; nil when NewConn made c. For Leasers that lend
// from several pools.
func (c *Conn) Owner() Leaser {
	if c.owner == nil {
		return nil
	}
	return c.owner
}

// ExactWrite says whether the count returned by a failed Write is exactly what the kernel accepted. True for
// *net.TCPConn and *net.UnixConn on unix, and for a connection with an ExactWrite() bool method that says so;
// false for TLS, where a written record may be lost as a whole.
func (c *Conn) ExactWrite() bool { return c.exact }

// Read and Write are the stream's, by a shorter way where there is one.
func (c *Conn) Read(b []byte) (int, error) {
	if c.direct != nil {
		return c.direct.read(b)
	}
	return c.Conn.Read(b)
}

// Write: see Read.
func (c *Conn) Write(b []byte) (int, error) {
	if c.direct != nil {
		return c.direct.write(b)
	}
	return c.Conn.Write(b)
}

// TryWrite writes as much of b as the connection takes without waiting: n bytes of it. An err says that it will take no more, and
// n is then exactly what the kernel accepted. Only when CanTryWrite; it is not affected by the write deadline.
func (c *Conn) TryWrite(b []byte) (n int, err error) {
	if c.direct != nil {
		return c.direct.tryWrite(b)
	}
	return c.Conn.(tryWriter).TryWrite(b)
}

// TryWriteParts is TryWrite of several parts one behind the other, where possible with one system call.
func (c *Conn) TryWriteParts(parts [][]byte) (n int, err error) {
	if c.direct != nil && len(parts) > 0 {
		return c.direct.tryWriteParts(parts[0], parts[1:])
	}
	for _, b := range parts {
		m, err := c.TryWrite(b)
		if n += m; err != nil || m < len(b) {
			return n, err
		}
	}
	return n, nil
}

// CanTryWrite: plain TCP and Unix sockets on linux can, and a connection without TLS whose type has the method TryWrite and
// says that its Write is exact.
func (c *Conn) CanTryWrite() bool {
	_, can := c.Conn.(tryWriter)
	return c.direct != nil || can && c.exact
}

type tryWriter interface{ TryWrite(b []byte) (int, error) }

// Gather makes a Read that has to wait go on waiting until n bytes have come, instead of any; the end of the stream, an error,
// a deadline and a smaller n end the wait as well. It is for a holder who knows that so many bytes will come. False: this connection cannot; then nothing
// changes. 1 is the default, to which Put returns. Safe for concurrent use with Read.
func (c *Conn) Gather(n int) bool { return c.direct != nil && c.direct.gather(n) }

// Readable says whether a Read would return at once: with bytes, the end of the stream or an error. It does not block. known:
// this connection can be looked at; else nothing is known.
func (c *Conn) Readable() (now, known bool) {
	if c.direct == nil {
		return false, false
	}
	return c.direct.readable(), true
}

// Abort closes the raw socket at once, without a TLS alert or lingering on unsent data. Safe from any
// goroutine, any number of times; it makes blocked reads and writes return. A Close that panics, or ends its
// goroutine, is an error.
func (c *Conn) Abort() error { return panics.Isolate("conn.Close", c.raw.Close) }

// SetDeadline, SetReadDeadline and SetWriteDeadline are the connection's, which may be anybody's: what panics there is
// an error, and closes it, so that nobody waits for a deadline that was not set.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadline(c.Conn.SetDeadline, t) }

// SetReadDeadline: see SetDeadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(c.Conn.SetReadDeadline, t) }

// SetWriteDeadline: see SetDeadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.Conn.SetWriteDeadline, t) }

func (c *Conn) setDeadline(set func(time.Time) error, t time.Time) error {
	err := panics.Isolate("conn.SetDeadline", func() error { return set(t) })
	if _, fell := err.(*panics.Error); fell {
		_ = c.Abort() // it is of no use any more
	}
	return err
}

// Created is the time of the dial, for age limits.
func (c *Conn) Created() time.Time { return c.created }

// MarkHandoff asks the holder to end its session cleanly and Put the connection soon, so that the OnPut hook
// can move it. Safe from any goroutine.
func (c *Conn) MarkHandoff() { c.handoff.Store(true) }

// ShouldHandoff reports a MarkHandoff that no OnPut has served yet.
func (c *Conn) ShouldHandoff() bool { return c.handoff.Load() }
