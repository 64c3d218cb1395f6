package fdengine

import (
	"context"
	"iter"
)

// Temporary: signatures only, so that the packages on top compile while the engine is written.

type Engine struct{}
type Stream struct{}
type Carry struct{}

// Report says how the commands that were unsettled when Shutdown began ended.
type Report struct{ Answered, NotSent, MaybeExecuted int }

// Stats is a snapshot of an engine.
type Stats struct {
	QueueCommands, QueueBytes       int // accepted, not written
	InFlightCommands, InFlightBytes int // written, unanswered (ghosts included)
	Accepted, Settled               uint64
	Answered, NotSent, Maybe        uint64 // settled, by fate
	Rejected                        uint64 // ErrQueueFull, veto, too large, encoder error
	Writes, Reads                   uint64 // syscall-sized chunks
	Sent, Replies                   uint64 // commands
	Replays, Refusals, Redirects    uint64
	Sessions, LeaseErrors           uint64
}

func New(Options) (*Engine, error)                                              { return nil, ErrClosed }
func (*Engine) Do(ctx context.Context, cmd Command) error                       { return ErrClosed }
func (*Engine) Submit(ctx context.Context, cmd Command, c Completion) error     { return ErrClosed }
func (*Engine) TrySubmit(cmd Command, c Completion) error                       { return ErrClosed }
func (*Engine) DoBatch(ctx context.Context, cmds []Command, errs []error) error { return ErrClosed }
func (*Engine) Stream() *Stream                                                 { return nil }
func (*Engine) Ping(ctx context.Context) error                                  { return ErrClosed }
func (*Engine) Ready() <-chan struct{}                                          { return nil }
func (*Engine) Stats() Stats                                                    { return Stats{} }
func (*Engine) Shutdown(ctx context.Context) (Report, error)                    { return Report{}, nil }
func (*Engine) Close() error                                                    { return nil }
func (*Engine) Done() <-chan struct{}                                           { return nil }
func (*Engine) Adopt(...*Carry)                                                 {}
func (*Stream) Do(ctx context.Context, cmd Command) error                       { return ErrClosed }
func (*Stream) Submit(ctx context.Context, cmd Command, c Completion) error     { return ErrClosed }
func (*Stream) Flush(ctx context.Context) error                                 { return ErrClosed }
func (*Stream) Reset() error                                                    { return nil }
func (*Stream) Close() error                                                    { return nil }
func SubmitAll[C Command](ctx context.Context, s Submitter, in iter.Seq[C]) iter.Seq2[C, error] {
	return nil
}
