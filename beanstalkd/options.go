package beanstalkd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// DefaultMaxJobSize is the largest job, in bytes, that a server takes unless told otherwise.
const DefaultMaxJobSize = 65535

// Options say which server to talk to, and how. Zero fields take the stated default, negative ones mean none where
// that is stated. Addr is required.
type Options struct {
	Network string // "tcp" (default), "unix"; with a DialFunc anything it understands
	Addr    string // host:port, or the path of a socket

	// Tube is the tube of commands that name none; default "default". A Client uses it for good, in each session.
	Tube string
	// ManyTubes lets a Client's commands name other tubes: each brings a `use` of its own then, in one piece with it,
	// which costs about half the rate. Without it a command that names another tube is refused with ErrOtherTube.
	ManyTubes bool
	// MaxJobSize is checked before a Put is sent, in bytes; default DefaultMaxJobSize, negative = not checked. It should
	// be the server's (max-job-size in its statistics).
	MaxJobSize int

	TLS         *tls.Config // spoken when set, for servers behind a TLS proxy; cloned, an empty ServerName is taken from Addr
	DialTimeout time.Duration
	KeepAlive   time.Duration // TCP keepalive; default 15 s, negative = off
	UserTimeout time.Duration // TCP_USER_TIMEOUT (linux only); default 30 s, negative = none
	MaxAge      time.Duration // a connection this old is not lent again; default none; not for a Consumer
	DialFunc    func(ctx context.Context, network, addr string) (net.Conn, error)

	// Engine tunes queue, window, timeouts, budget and hooks. Its Protocol, Leaser and Ping are set by New and must be
	// left empty; OnPush too, since the server sends nothing unasked. A Consumer sets more; see NewConsumer.
	Engine fdengine.Options
}

// Validate returns all faults at once, each with value and bound. Faults of Engine are among them.
func (o Options) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("beanstalkd: "+format, args...)) }
	if o.Tube != "" {
		if err := beanstalk.CheckName(o.Tube); err != nil {
			fault("Tube: %w", err)
		}
	}
	if o.MaxJobSize > beanstalk.DefaultBody {
		fault("MaxJobSize is %d, it must be at most %d", o.MaxJobSize, beanstalk.DefaultBody)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"Protocol", o.Engine.Protocol != nil}, {"Leaser", o.Engine.Leaser != nil}, {"Ping", o.Engine.Ping != nil},
		{"OnPush", o.Engine.OnPush != nil},
	} {
		if f.set {
			fault("Engine.%s is set, it must be left empty", f.name)
		}
	}
	po := o.pool(nil)
	po.BackoffMin, po.BackoffMax = 0, 0 // the engine's, and checked there
	return errors.Join(errors.Join(faults...), po.Validate(), o.engine((*pool.Pool)(nil)).Validate())
}

// tube is Tube with its default.
func (o Options) tube() string {
	if o.Tube == "" {
		return "default"
	}
	return o.Tube
}

// pool makes the options of the pool: one connection in use, one being replaced. watched is asked at each dial for
// the tubes to watch; nil or none leaves the server's.
func (o Options) pool(watched func() []string) pool.Options {
	h := handshake{tube: o.tube(), watched: watched}
	return pool.Options{
		Network: o.Network, Addr: o.Addr, DialFunc: o.DialFunc, TLS: o.TLS, DialTimeout: o.DialTimeout,
		KeepAlive: o.KeepAlive, UserTimeout: o.UserTimeout, MaxAge: o.MaxAge, Size: 2,
		BackoffMin: o.Engine.BackoffMin, BackoffMax: o.Engine.BackoffMax,
		Handshake: h.run,
	}
}

// engine makes the options of the engine that leases from l.
func (o Options) engine(l pool.Leaser) fdengine.Options {
	eo := o.Engine
	t := &tubes{own: o.tube(), many: o.ManyTubes, limit: o.MaxJobSize, next: eo.Gate}
	switch {
	case t.limit == 0:
		t.limit = DefaultMaxJobSize
	case t.limit < 0:
		t.limit = 0
	}
	eo.Gate = t.gate
	eo.Protocol = NewProtocol
	eo.Leaser = l
	eo.Ping = func() fdengine.Command { return ListTubeUsed() }
	return eo
}
