package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/lanes"
	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/resp"
)

// Options say which server to talk to, as whom, and how. Zero fields take the stated default. Addr is required.
// Formatting or logging Options never shows the password, unless they are an unexported field of what is formatted:
// there package fmt cannot ask how.
type Options struct {
	Network string // "tcp" (default), "unix"; with a DialFunc anything it understands
	Addr    string // host:port, or the path of a socket

	Username string // empty: the default user
	Password string `json:"-"` // empty, with an empty Username: no authentication
	// Credentials is asked at each dial, in place of Username and Password, within DialTimeout.
	Credentials func(ctx context.Context) (username, password string, err error) `json:"-"`

	DB         int    // selected in each session
	ClientName string // shown by CLIENT LIST; without spaces
	Protocol   int    // 3 (default; falls back when the server has no HELLO) or 2

	TLS         *tls.Config // spoken when set; it is cloned, and an empty ServerName is taken from Addr
	DialTimeout time.Duration
	KeepAlive   time.Duration // TCP keepalive; default 15 s, negative = off
	UserTimeout time.Duration // TCP_USER_TIMEOUT (linux only); default 30 s, negative = none
	MaxAge      time.Duration // a connection this old is not lent again; default none
	DialFunc    func(ctx context.Context, network, addr string) (net.Conn, error)

	// Lanes is how many shared connections there are, each with an engine of its own; default 1, at most 64. More are
	// for machines with many CPUs, and for servers that use several: docs/PERFORMANCE.md. Package lanes says which
	// command goes where (by its key), and what order is left. Sizes and limits of Engine then hold for each, and its
	// hooks and OnPush are called for several at the same time.
	Lanes int

	// OnPush gets the frames that answer no command (RESP3 pushes; not the messages of a Subscription), on the
	// reader of their connection: it must not block, the frame is valid during the call only, and calls of lent
	// connections may overlap those of the shared one.
	OnPush func(frame []byte)

	// Lent bounds the connections that Blocking, Lend and Watch use at a time; default 16, negative = none.
	// Subscriptions have their own.
	Lent int
	// CancelWait is how much longer than its ctx a blocking command may take, to learn from the server whether it
	// has taken something: default 500 ms, negative = none, then a cancelled pop may lose what it is given.
	CancelWait time.Duration

	// Engine tunes queue, window, timeouts, budget and hooks. Its Protocol, Leaser, Ping and OnPush are set by
	// New and must be left empty. Timeouts, budget, Gate, Observer and Logger hold for lent connections and
	// subscriptions as well; sizes, Limiter, Rerouter, IdleRelease and MaxHold for the shared connection only.
	Engine fdengine.Options
}

// Validate returns all faults at once, each with value and bound; never a password. Faults of Engine are among
// them.
func (o Options) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("redis: "+format, args...)) }
	if o.Protocol != 0 && o.Protocol != 2 && o.Protocol != 3 {
		fault("Protocol is %d, it must be 2 or 3", o.Protocol)
	}
	if o.DB < 0 {
		fault("DB is %d, it must be at least 0", o.DB)
	}
	if i := strings.IndexFunc(o.ClientName, func(c rune) bool { return c < '!' || c > '~' }); i >= 0 {
		fault("ClientName has %q at byte %d, only printable ASCII without spaces is allowed", o.ClientName[i], i)
	}
	if o.Credentials != nil && (o.Username != "" || o.Password != "") {
		fault("Credentials and Username or Password are both set, only one of them can be used")
	}
	if o.Lanes < 0 || o.Lanes > lanes.Max {
		fault("Lanes is %d, it must be 1 to %d, or 0 for one", o.Lanes, lanes.Max)
	}
	if o.Engine.Protocol != nil {
		fault("Engine.Protocol is set, it must be left empty")
	}
	if o.Engine.Leaser != nil {
		fault("Engine.Leaser is set, it must be left empty")
	}
	if o.Engine.Ping != nil {
		fault("Engine.Ping is set, it must be left empty")
	}
	if o.Engine.OnPush != nil {
		fault("Engine.OnPush is set, use OnPush")
	}
	po := o.pool()
	po.BackoffMin, po.BackoffMax = 0, 0 // the engine's, and checked there
	return errors.Join(errors.Join(faults...), po.Validate(), o.engine((*pool.Pool)(nil)).Validate())
}

// pool makes the options of the pool that serves the client, or one lane of it: one connection in use, one being
// replaced.
func (o Options) pool() pool.Options {
	h := handshake{protocol: o.Protocol, db: o.DB, name: o.ClientName}
	po := pool.Options{
		Network: o.Network, Addr: o.Addr, DialFunc: o.DialFunc, TLS: o.TLS, DialTimeout: o.DialTimeout,
		KeepAlive: o.KeepAlive, UserTimeout: o.UserTimeout, MaxAge: o.MaxAge, Size: 2,
		BackoffMin: o.Engine.BackoffMin, BackoffMax: o.Engine.BackoffMax,
		Handshake: h.run, Credentials: o.sealed().Credentials,
	}
	return po
}

// sealed moves the password to where no formatting of what holds the Options finds it.
func (o Options) sealed() Options {
	if username, password := o.Username, o.Password; o.Credentials == nil && (username != "" || password != "") {
		o.Credentials = func(context.Context) (string, string, error) { return username, password, nil }
		o.Username, o.Password = "", ""
	}
	return o
}

// engine makes the options of the engine that leases from l.
func (o Options) engine(l pool.Leaser) fdengine.Options {
	eo, addr := o.Engine, o.Addr
	limits := resp.Limits{}
	if eo.MaxReply > resp.DefaultBulk {
		limits.Bulk = eo.MaxReply // a lower MaxReply is the engine's to enforce, by failing one command only
	}
	eo.Protocol = func() fdengine.Protocol { return newProtocol(addr, limits) }
	eo.Leaser = l
	eo.Ping = func() fdengine.Command { return Ping() }
	eo.OnPush = o.OnPush
	return eo
}

const (
	defaultLent       = 16
	defaultCancelWait = 500 * time.Millisecond
)

func (o Options) lent() int {
	if o.Lent == 0 {
		return defaultLent
	}
	return max(o.Lent, 0)
}

func (o Options) cancelWait() time.Duration {
	if o.CancelWait == 0 {
		return defaultCancelWait
	}
	return o.CancelWait
}

// lentPool makes the options of the pool behind lent connections.
func (o Options) lentPool() pool.Options {
	po := o.pool()
	po.Size = max(o.lent(), 1)
	return po
}

// lentEngine makes the options of an engine that one caller uses at a time: one command in flight, and a caller
// who leaves it there cuts the connection. It keeps its connection as long as it lives.
func (o Options) lentEngine(l pool.Leaser) fdengine.Options {
	eo := o.engine(l)
	eo.Window, eo.Queue = 1, 8
	eo.CutOnCancel = true
	eo.IdleRelease, eo.MaxHold = 0, 0
	eo.Rerouter, eo.Limiter = nil, nil
	return eo
}

// String names server, user and database.
func (o Options) String() string {
	s := fmt.Sprintf("redis{%s %s db %d", cmpOr(o.Network, "tcp"), o.Addr, o.DB)
	if o.Username != "" {
		s += " user " + o.Username
	}
	if o.Password != "" {
		s += " password ***"
	}
	if o.Credentials != nil {
		s += " with credentials"
	}
	if o.TLS != nil {
		s += " tls"
	}
	return s + "}"
}

// Format prints String for every verb, so that no verb shows the fields.
func (o Options) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(o.String())) }

// LogValue is String, for slog.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

func cmpOr(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
