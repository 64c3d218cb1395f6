package fdengine

import (
	"context"
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

	ReadTimeout  time.Duration // oldest unanswered command without progress; default 5 s, negative = none
	WriteTimeout time.Duration // one written piece without an accepted byte; default 5 s, negative = none
	PingEvery    time.Duration // ping a connection idle this long; default 30 s, negative = none
	IdleRelease  time.Duration // Put a connection idle this long; default none, at least 30 s
	MaxHold      time.Duration // Put a connection held this long, at a clean boundary; default none, at least 1 s

	Budget       int           // re-sends that may have executed, per command; default 3, negative = none
	BackoffMin   time.Duration // full jitter between BackoffMin and BackoffMax; default 10 ms
	BackoffMax   time.Duration // default 1 s
	MaxOutage    time.Duration // a command's own wait without a usable connection; default 30 s, negative = for ever
	MaxRequest   int           // bytes of one encoded request; default 512 MiB
	MaxReply     int           // bytes of one reply frame; default 512 MiB
	MaxRefusals  int           // sends of one command answered by RetryHere; default 32, negative = none
	MaxRedirects int           // Reroutes of one command; default 8, negative = none
	StrictOrder  bool          // at a cut, everything published after a failed command fails as well

	Limiter  Limiter
	Observer Observer
	Gate     func(ctx context.Context, cmd Command) error // may veto on the caller's goroutine before queueing; NotSent
	OnPush   func(frame []byte)                           // push frames, on the reader; frame valid during the call
	Logger   *slog.Logger                                 // session ends and caught panics; nil = silent
}
