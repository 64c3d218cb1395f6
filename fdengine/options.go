package fdengine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fdengine/fullduplex/pool"
)

// Options configure an Engine. Zero fields take the stated default, negative ones mean none (where "none" is
// stated). Protocol and Leaser are required.
type Options struct {
	Protocol func() Protocol // a new framer and judge per session
	Leaser   pool.Leaser     // where connections come from
	Rerouter Rerouter        // where refused and carried commands go; nil: they stay here
	Ping     func() Command  // makes the command of Ping and of the idle ping; nil: no pings

	Window      int // commands written and unanswered; default 65,536
	WindowBytes int // bytes of them; default 64 MiB
	Queue       int // commands waiting to be written, beyond the window; default 65,536
	QueueBytes  int // bytes of them; default 64 MiB

	ReadTimeout  time.Duration // oldest unanswered command, once the kernel has all of it, without a whole reply arriving, big ones too; default 5 s, negative = none
	WriteTimeout time.Duration // a write without an accepted byte (TLS: without 16 KiB), seen after one to two of it; default 5 s, negative = none
	PingEvery    time.Duration // ping a connection idle this long; default 30 s, negative = none
	IdleRelease  time.Duration // Put a connection idle this long; default none, at least 30 s
	MaxHold      time.Duration // Put a connection held this long, at a clean boundary; default none, at least 1 s

	Budget       int           // re-sends that may have executed, per command, and connections that may die in the middle of it (3 at least); default 3, negative = none
	BackoffMin   time.Duration // full jitter between BackoffMin and BackoffMax; default 10 ms
	BackoffMax   time.Duration // default 1 s
	MaxOutage    time.Duration // a command's own wait without a usable connection, and how long connections may die in the middle of one; default 30 s, negative = for ever (of the latter: 30 s)
	MaxRequest   int           // bytes of one encoded request; default 512 MiB
	MaxReply     int           // bytes of one reply frame; default 512 MiB
	MaxRefusals  int           // sends of one command answered by RetryHere; default 32, negative = none
	MaxRedirects int           // Reroutes of one command; default 8, negative = none
	CutOnCancel  bool          // a caller who leaves a command on the wire cuts the connection: for lent ones, where it may block
	LoneCaller   int           // a caller who is alone writes and reads for itself: half its latency. 0 = where the socket can be looked at before, 1 = everywhere, see docs/ENGINE.md; negative = never
	StrictOrder  bool          // at a cut, everything published after a failed command fails as well

	Limiter  Limiter
	Observer Observer
	Gate     func(ctx context.Context, cmd Command) error // may veto on the caller's goroutine before queueing; NotSent
	OnPush   func(frame []byte)                           // push frames, on the reader; frame valid during the call
	Logger   *slog.Logger                                 // session ends and caught panics; nil = silent
}

const (
	defaultWindow      = 65536
	defaultWindowBytes = 64 << 20
	defaultMaxFrame    = 512 << 20
	maxFrameLimit      = 2<<30 - 1
	maxCommands        = 1 << 30
	maxBytes           = 1 << 40
	maxBudget          = 65534 // the sends of a record are counted in 16 bits, one more than its budget
	defaultOutage      = 30 * time.Second
	drainBound         = 5 * time.Second // of a retire or handoff without ReadTimeout
)

// withDefaults fills the zero fields. Negative ones, where they mean none, become the largest or zero value that
// has that effect.
func (o Options) withDefaults() Options {
	number := func(p *int, def int) {
		if *p == 0 {
			*p = def
		}
	}
	span := func(p *time.Duration, def time.Duration) {
		if *p == 0 {
			*p = def
		}
		if *p < 0 {
			*p = 0 // none
		}
	}
	number(&o.Window, defaultWindow)
	number(&o.WindowBytes, defaultWindowBytes)
	number(&o.Queue, defaultWindow)
	number(&o.QueueBytes, defaultWindowBytes)
	number(&o.MaxRequest, defaultMaxFrame)
	number(&o.MaxReply, defaultMaxFrame)
	number(&o.Budget, 3)
	number(&o.MaxRefusals, 32)
	number(&o.MaxRedirects, 8)
	o.Budget, o.MaxRefusals, o.MaxRedirects = max(o.Budget, 0), max(o.MaxRefusals, 0), max(o.MaxRedirects, 0)
	span(&o.ReadTimeout, 5*time.Second)
	span(&o.WriteTimeout, 5*time.Second)
	span(&o.PingEvery, 30*time.Second)
	span(&o.IdleRelease, 0)
	span(&o.MaxHold, 0)
	span(&o.MaxOutage, defaultOutage)
	span(&o.BackoffMin, 10*time.Millisecond)
	span(&o.BackoffMax, time.Second)
	return o
}

// Validate reports every fault of the options at once, each with its value and its bound; nil when New would take
// them.
func (o Options) Validate() error {
	var faults []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("fdengine: "+format, args...))
		}
	}
	bad(o.Protocol != nil, "Protocol is required")
	bad(o.Leaser != nil, "Leaser is required")
	atLeast := func(name string, v, low int) { bad(v == 0 || v >= low, "%s is %d, must be at least %d", name, v, low) }
	atLeast("Window", o.Window, 1)
	atLeast("WindowBytes", o.WindowBytes, 1)
	atLeast("Queue", o.Queue, 1)
	atLeast("QueueBytes", o.QueueBytes, 1)
	atLeast("MaxRequest", o.MaxRequest, 1)
	atLeast("MaxReply", o.MaxReply, 1)
	atMost := func(name string, v, high int) { bad(v <= high, "%s is %d, must be at most %d", name, v, high) }
	atMost("Window", o.Window, maxCommands)
	atMost("Queue", o.Queue, maxCommands)
	atMost("WindowBytes", o.WindowBytes, maxBytes)
	atMost("QueueBytes", o.QueueBytes, maxBytes)
	atMost("MaxRequest", o.MaxRequest, maxFrameLimit)
	atMost("MaxReply", o.MaxReply, maxFrameLimit)
	atMost("Budget", o.Budget, maxBudget)
	atMost("MaxRefusals", o.MaxRefusals, 65535)
	atMost("MaxRedirects", o.MaxRedirects, 255)
	notUnder := func(name string, v, low time.Duration) {
		bad(v <= 0 || v >= low, "%s is %v, must be at least %v (or negative for none)", name, v, low)
	}
	notUnder("ReadTimeout", o.ReadTimeout, time.Millisecond)
	notUnder("WriteTimeout", o.WriteTimeout, time.Millisecond)
	notUnder("PingEvery", o.PingEvery, 10*time.Millisecond)
	notUnder("IdleRelease", o.IdleRelease, 30*time.Second)
	notUnder("MaxHold", o.MaxHold, time.Second)
	d := o.withDefaults()
	bad(o.BackoffMin >= 0, "BackoffMin is %v, must not be negative", o.BackoffMin)
	bad(o.BackoffMax >= 0 && d.BackoffMax >= d.BackoffMin, "BackoffMax is %v, must be at least BackoffMin, %v",
		o.BackoffMax, d.BackoffMin)
	return errors.Join(faults...)
}
