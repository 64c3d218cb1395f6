package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Options configure a Pool. Zero fields take the stated default, negative ones mean none where "none" is stated.
// Addr is required. The functions are called without any lock held and may be called concurrently; a panic or a
// runtime.Goexit in one of them fails that dial (or that Put) and nothing else.
type Options struct {
	Network string // "tcp" (default), "tcp4", "tcp6", "unix"; with a DialFunc anything it understands
	Addr    string // host:port, or the path of a socket; resolved anew by every dial

	// DialFunc opens the raw connection; default is a net.Dialer. It should return soon after ctx ends: until
	// then it keeps its place in Size, although the Lease that wanted it has returned. A connection that comes
	// too late is closed.
	DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS, when set, is spoken on what DialFunc returned. An empty ServerName is taken from Addr. It is cloned.
	TLS *tls.Config
	// DialTimeout covers connect, TLS, Credentials, Handshake and OnConnect together, and a call of OnPut;
	// default 5 s, negative = none.
	DialTimeout time.Duration
	// Credentials is asked once per dial, after the connection is open, so that short-lived secrets are fresh.
	// They are passed on in Dial. Needs a Handshake.
	Credentials func(ctx context.Context) (username, password string, err error)
	// Handshake sets the session up; it must end with one answered round trip, since Lease calls the connection
	// usable when it returns nil. Without one, an open connection counts as usable.
	Handshake func(ctx context.Context, d *Dial) error
	// OnConnect runs after Handshake, before the first loan; it may talk on the connection but must leave it at
	// a frame boundary.
	OnConnect func(ctx context.Context, c *Conn) error
	// OnPut runs in every Put of an open pool, on a goroutine of its own while Put waits. When c.ShouldHandoff,
	// returning nil means that the handoff was done. An error removes the connection, like Remove with that
	// error. Without an OnPut, a Put of a connection marked for handoff closes it.
	OnPut func(c *Conn) error

	Size         int  // connections open at most, dials included; default 10
	FailWhenFull bool // Lease returns ErrFull at the limit instead of waiting
	MaxIdle      int  // idle connections kept; default Size, negative = none

	IdleTimeout time.Duration // an idle connection is closed after this; default 5 min, negative = none
	MaxAge      time.Duration // a connection this old is not lent again; default none
	KeepAlive   time.Duration // TCP keepalive: first probe after this; default 15 s, negative = off
	UserTimeout time.Duration // TCP_USER_TIMEOUT (linux only): unacknowledged data; default 30 s, negative = none

	// After n failed rounds of dials in a row the next dial waits a random time between 0 and
	// min(BackoffMax, BackoffMin<<n). A dial that succeeds ends that.
	BackoffMin time.Duration // default 10 ms
	BackoffMax time.Duration // default 1 s
}

// Dial is what a Handshake works on.
type Dial struct {
	// Conn is the new connection, with a deadline at the end of the dial timeout; the pool clears the deadline
	// afterwards. The Handshake stores Session and Unread in it.
	Conn     *Conn
	Username string // from Options.Credentials, as the password is
	Password string `json:"-"`
	// Fence lists the Session of each connection that was removed with a cause although the server had not
	// closed it: the server may still be executing what it received there. The Handshake must stop these
	// sessions, or fail, before it returns nil.
	Fence []any
}

// Validate returns all faults of o joined, or nil.
func (o Options) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("pool: "+format, args...)) }
	network := o.Network
	if network == "" {
		network = "tcp"
	}
	if o.Addr == "" {
		fault("Addr is empty")
	} else if o.DialFunc == nil && network != "unix" {
		if _, port, err := net.SplitHostPort(o.Addr); err != nil {
			fault("Addr %q is not host:port", o.Addr)
		} else if n, err := strconv.Atoi(port); port == "" || err == nil && (n < 1 || n > 65535) || errors.Is(err, strconv.ErrRange) {
			fault("Addr %q has port %q, it must be 1 to 65535", o.Addr, port)
		}
	}
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
	default:
		if o.DialFunc == nil {
			fault("Network %q is none of tcp, tcp4, tcp6, unix and there is no DialFunc", o.Network)
		}
	}
	if o.TLS != nil && !o.TLS.InsecureSkipVerify && o.TLS.ServerName == "" && hostOf(o.Addr) == "" {
		fault("TLS without ServerName, and Addr %q names no host", o.Addr)
	}
	if o.Credentials != nil && o.Handshake == nil {
		fault("Credentials without a Handshake would reach nothing")
	}
	if o.Size < 0 {
		fault("Size %d is below 0", o.Size)
	}
	d := o.withDefaults()
	if o.Size >= 0 && d.MaxIdle > d.Size {
		fault("MaxIdle %d is above Size %d", d.MaxIdle, d.Size)
	}
	if o.BackoffMin < 0 {
		fault("BackoffMin %v is below 0", o.BackoffMin)
	}
	if o.BackoffMax < 0 {
		fault("BackoffMax %v is below 0", o.BackoffMax)
	} else if d.BackoffMin > d.BackoffMax {
		fault("BackoffMin %v is above BackoffMax %v", d.BackoffMin, d.BackoffMax)
	}
	for _, t := range []struct {
		name string
		d    time.Duration
		min  time.Duration
	}{
		{"KeepAlive", o.KeepAlive, time.Second}, {"UserTimeout", o.UserTimeout, time.Millisecond},
	} {
		if t.d > 0 && t.d < t.min {
			fault("%s %v is below %v, the unit of the kernel", t.name, t.d, t.min)
		}
	}
	return errors.Join(faults...)
}

// withDefaults fills the zero fields and turns "none" into zero where that is what the code tests for.
func (o Options) withDefaults() Options {
	if o.Network == "" {
		o.Network = "tcp"
	}
	fill(&o.DialTimeout, 5*time.Second)
	fill(&o.Size, 10)
	fill(&o.MaxIdle, o.Size)
	fill(&o.IdleTimeout, 5*time.Minute)
	fill(&o.MaxAge, 0)
	fill(&o.KeepAlive, 15*time.Second)
	fill(&o.UserTimeout, 30*time.Second)
	fill(&o.BackoffMin, 10*time.Millisecond)
	fill(&o.BackoffMax, time.Second)
	if o.DialFunc == nil {
		o.DialFunc = (&net.Dialer{KeepAlive: -1}).DialContext // keepalive is set by setSocketOptions
	}
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
		if o.TLS.ServerName == "" {
			o.TLS.ServerName = hostOf(o.Addr)
		}
	}
	return o
}

// fill makes *v its default when zero, and zero when negative.
func fill[T int | time.Duration](v *T, def T) {
	switch {
	case *v == 0:
		*v = def
	case *v < 0:
		*v = 0
	}
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	return host
}
