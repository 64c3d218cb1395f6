package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/fdengine/fullduplex/panics"
)

var errNoConn = errors.New("DialFunc returned neither a connection nor an error")

// establish makes a.conn a usable connection: connect, TLS, credentials, handshake with the pending fences,
// OnConnect. It is the only way to one, for the first connection as for every later one. It runs on the attempt's
// goroutine and leaves closing to finish.
func (p *Pool) establish(a *attempt) error {
	if err := p.phase(a, PhaseConnect, func() error { return p.connect(a) }); err != nil {
		return err
	}
	conn := a.conn
	stop := context.AfterFunc(a.ctx, func() { _ = conn.Abort() })
	defer stop()
	if p.opts.TLS != nil {
		t := tls.Client(conn.Conn, p.opts.TLS)
		a.conn = NewConn(t, conn.raw, conn.created)
		if err := p.phase(a, PhaseTLS, func() error { return t.HandshakeContext(a.ctx) }); err != nil {
			return err
		}
	}
	if err := p.session(a); err != nil {
		return err
	}
	if !stop() {
		return context.Cause(a.ctx)
	}
	return a.conn.SetDeadline(time.Time{})
}

// connect opens the raw connection.
func (p *Pool) connect(a *attempt) error {
	raw, err := p.opts.DialFunc(a.ctx, p.opts.Network, p.opts.Addr)
	if err != nil {
		return err
	}
	if raw == nil {
		return errNoConn
	}
	stream := raw
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn() // what Abort must close: a tls.Conn's own Close may block on its alert
	}
	a.conn = NewConn(stream, raw, time.Now())
	if err := setSocketOptions(raw, p.opts.KeepAlive, p.opts.UserTimeout); err != nil {
		return err
	}
	if stream != raw || p.opts.TLS != nil {
		if err := keepUnsentShort(raw); err != nil {
			return err
		}
	}
	return raw.SetDeadline(a.deadline)
}

// session runs the binding's part on an open stream.
func (p *Pool) session(a *attempt) error {
	d := &Dial{Conn: a.conn}
	if p.opts.Credentials != nil {
		err := p.phase(a, PhaseCredentials, func() (err error) {
			d.Username, d.Password, err = p.opts.Credentials(a.ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	if p.opts.Handshake != nil {
		var last uint64
		d.Fence, last = p.pendingFences()
		err := p.phase(a, PhaseHandshake, func() error { return p.opts.Handshake(a.ctx, d) })
		if err != nil {
			return err
		}
		p.clearFences(last)
	}
	if p.opts.OnConnect != nil {
		return p.phase(a, PhaseOnConnect, func() error { return p.opts.OnConnect(a.ctx, a.conn) })
	}
	return nil
}

// phase runs f, which calls user code, behind a panic boundary named after ph. A runtime.Goexit in f ends the
// attempt with an error, and its goroutine.
func (p *Pool) phase(a *attempt, ph Phase, f func() error) error {
	a.phase.Store(uint32(ph))
	err := panics.Guard(ph.String(), func(e *panics.Error) { p.finish(a, e) }, f)
	if err == nil {
		err = a.ctx.Err() // f may not have looked
	}
	return err
}

// setSocketOptions applies keepalive and TCP_USER_TIMEOUT to a TCP connection; on any other it does nothing.
func setSocketOptions(raw net.Conn, keepAlive, userTimeout time.Duration) error {
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return nil
	}
	if err := tcp.SetKeepAliveConfig(keepAliveConfig(keepAlive)); err != nil {
		return err
	}
	if userTimeout == 0 {
		return nil
	}
	return setUserTimeout(tcp, userTimeout)
}

// unsentMost is how many bytes a socket under TLS takes that it cannot send yet.
const unsentMost = 32 << 10

// keepUnsentShort bounds what waits in a TCP socket to be sent. Else the kernel wakes a writer when a third of its buffer is free: over a
// slow link a Write moves by nearly a megabyte at a time, and who sees it through TLS takes it for dead in between.
func keepUnsentShort(raw net.Conn) error {
	if tcp, ok := raw.(*net.TCPConn); ok {
		return setUnsent(tcp, unsentMost)
	}
	return nil
}

// keepAliveConfig probes first after idle and gives up after three more probes, a third of idle apart.
func keepAliveConfig(idle time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: idle > 0, Idle: idle, Interval: max(idle/3, time.Second), Count: 3}
}
