package scripted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/pool"
)

// Leaser is the smallest pool.Leaser: it dials, does one PING round trip, lends, and counts. It keeps connections
// that were Put and lends the latest first. Set the fields before the first Lease.
type Leaser struct {
	DialFunc func(ctx context.Context) (net.Conn, error)

	// OnLease, when set, is asked before each Lease, n counting from 1; its error fails the Lease. No lock held.
	OnLease func(n int) error

	// OnPut, when set, sees each connection that is Put before it may be lent again. No lock held.
	OnPut func(c *pool.Conn)

	mu struct {
		sync.Mutex
		closed  bool
		leases  int
		granted int
		dials   int
		puts    int
		idle    []*pool.Conn
		out     map[*pool.Conn]bool
		reasons []error
		faults  []error
	}
}

var _ pool.Leaser = (*Leaser)(nil)

// NewLeaser lends connections that dial makes.
func NewLeaser(dial func(ctx context.Context) (net.Conn, error)) *Leaser {
	return &Leaser{DialFunc: dial}
}

// Lease lends an idle connection or dials. It fails with what OnLease returns, with a *pool.DialError around the
// error of the dial or of the round trip (an error reply to PING is a *ServerError), or with pool.ErrClosed. For
// an error that will not heal return pool.Permanent(err) from OnLease or DialFunc.
func (l *Leaser) Lease(ctx context.Context) (*pool.Conn, error) {
	l.mu.Lock()
	l.mu.leases++
	n, closed := l.mu.leases, l.mu.closed
	l.mu.Unlock()
	if closed {
		return nil, pool.ErrClosed
	}
	if l.OnLease != nil {
		if err := l.OnLease(n); err != nil {
			return nil, err
		}
	}
	if c := l.takeIdle(); c != nil {
		return c, nil
	}
	nc, err := l.dial(ctx)
	if err != nil {
		return nil, &pool.DialError{Addr: "scripted", Phase: pool.PhaseConnect, Err: err}
	}
	unread, err := roundTrip(ctx, nc)
	if err != nil {
		_ = nc.Close()
		return nil, &pool.DialError{Addr: "scripted", Phase: pool.PhaseHandshake, Err: err}
	}
	c := pool.NewConn(nc, nc, time.Now())
	c.Unread = unread
	l.lend(c)
	return c, nil
}

func (l *Leaser) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	l.mu.dials++
	l.mu.Unlock()
	return l.DialFunc(ctx)
}

func (l *Leaser) takeIdle() *pool.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := len(l.mu.idle) - 1
	if k < 0 {
		return nil
	}
	c := l.mu.idle[k]
	l.mu.idle = l.mu.idle[:k]
	l.lendLocked(c)
	return c
}

func (l *Leaser) lend(c *pool.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lendLocked(c)
}

func (l *Leaser) lendLocked(c *pool.Conn) {
	if l.mu.out == nil {
		l.mu.out = map[*pool.Conn]bool{}
	}
	l.mu.granted++
	l.mu.out[c] = true
}

// roundTrip sends PING and waits for the answer; bytes behind it are returned.
func roundTrip(ctx context.Context, nc net.Conn) (unread []byte, err error) {
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer func() {
		if !stop() {
			err = ctx.Err() // also in place of the error that the Close made
		}
	}()
	if _, err := nc.Write(AppendRequest(nil, "PING")); err != nil {
		return nil, err
	}
	var p Protocol
	var got []byte
	buf := make([]byte, 4096)
	for {
		n, err := nc.Read(buf)
		got = append(got, buf[:n]...)
		frame, _, _, bad := p.Next(got)
		if bad != nil {
			return nil, bad
		}
		if frame > 0 {
			_, _, refused := decode(got[:frame])
			return slices.Clone(got[frame:]), refused
		}
		if err != nil {
			return nil, err
		}
	}
}

// Put takes c back for the next Lease.
func (l *Leaser) Put(c *pool.Conn) {
	if !l.back(c, "Put") {
		return
	}
	if l.OnPut != nil {
		l.OnPut(c)
	}
	_ = c.SetDeadline(time.Time{})
	l.mu.Lock()
	l.mu.puts++
	closed := l.mu.closed
	if !closed {
		l.mu.idle = append(l.mu.idle, c)
	}
	l.mu.Unlock()
	if closed {
		_ = c.Close()
	}
}

// Remove takes c back, closes it and keeps why.
func (l *Leaser) Remove(c *pool.Conn, why error) {
	if !l.back(c, "Remove") {
		return
	}
	l.mu.Lock()
	l.mu.reasons = append(l.mu.reasons, why)
	l.mu.Unlock()
	_ = c.Close()
}

// back ends the loan of c, or notes a fault.
func (l *Leaser) back(c *pool.Conn, how string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.out[c] {
		l.mu.faults = append(l.mu.faults, errors.New("scripted: "+how+" of a connection that is not on loan, fault "+
			strconv.Itoa(len(l.mu.faults)+1)))
		return false
	}
	delete(l.mu.out, c)
	return true
}

// Close closes the idle connections; leases on loan are closed when they come back.
func (l *Leaser) Close() {
	l.mu.Lock()
	idle := l.mu.idle
	l.mu.idle, l.mu.closed = nil, true
	l.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}

// Counts of a Leaser.
type Counts struct {
	Leases  int // calls of Lease
	Granted int // that returned a connection
	Dials   int
	Puts    int
	Removes int
	Out     int // on loan
	Idle    int
}

// Counts is a snapshot.
func (l *Leaser) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Counts{
		Leases: l.mu.leases, Granted: l.mu.granted, Dials: l.mu.dials, Puts: l.mu.puts,
		Removes: len(l.mu.reasons), Out: len(l.mu.out), Idle: len(l.mu.idle),
	}
}

// Reasons is what the connections were Removed for, in order.
func (l *Leaser) Reasons() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.reasons)
}

// Check is an error when a connection was given back twice or was never lent, or is still on loan.
func (l *Leaser) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := slices.Clone(l.mu.faults)
	if n := len(l.mu.out); n > 0 {
		errs = append(errs, fmt.Errorf("scripted: %d connections still on loan", n))
	}
	return errors.Join(errs...)
}
