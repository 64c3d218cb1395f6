package fdengine

import (
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/carry"
)

// Classes of errors, for errors.Is. Every error of a command also has a fate: see FateOf.
var (
	ErrClosed        = errors.New("engine closed")
	ErrQueueFull     = errors.New("queue full")                                    // TrySubmit found no room; NotSent
	ErrNotSent       = errors.New("not sent: the server cannot have run it")       // matches every error of that fate
	ErrMaybeExecuted = errors.New("maybe executed: the server may have run it")    // matches every error of that fate
	ErrBudget        = errors.New("retry budget spent")                            // MaybeExecuted, but see ErrPoisoned
	ErrPoisoned      = errors.New("connection died each time this went out alone") // or in the middle of it, then NotSent unless an earlier send left; also ErrBudget
	ErrUnavailable   = errors.New("no usable connection")
	ErrStreamBroken  = errors.New("stream broken by an earlier failure")
	ErrTooLarge      = errors.New("too large") // a request (NotSent) or a reply (Answered) over its limit
	ErrBroken        = errors.New("engine stopped after an internal fault")
	ErrDenied        = errors.New("denied by limiter")
	ErrTimeout       = errors.New("settle-by time passed") // Spec.Timeout, or the deadline of Submit's ctx
)

// CallError is the error of one command that got no answer of its own. It matches, under errors.Is, its class
// (ErrClosed, ErrBudget, ...), ErrNotSent or ErrMaybeExecuted by its fate, and whatever Cause matches.
type CallError struct {
	Fate  carry.Fate
	Sends int   // sends that left this process, refused ones included
	Class error // one of the Err variables above, or nil when only the fate and the cause speak
	Cause error // the transport error, the ctx error, the server's refusal; may be nil
}

func (e *CallError) Error() string {
	s := fmt.Sprintf("%v after %d sends", e.Fate, e.Sends)
	if e.Class != nil {
		s = e.Class.Error() + " (" + s + ")"
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Is matches the classes; Cause is reached through Unwrap.
func (e *CallError) Is(target error) bool {
	switch target {
	case ErrNotSent:
		return e.Fate == carry.NotSent
	case ErrMaybeExecuted:
		return e.Fate == carry.MaybeExecuted
	case ErrBudget:
		return e.Class == ErrBudget || e.Class == ErrPoisoned
	}
	return e.Class != nil && e.Class == target
}

func (e *CallError) Unwrap() error { return e.Cause }

// fated is what an error needs to speak of its own fate: CallError by field, a binding's server error by method.
type fated interface{ Fate() carry.Fate }

// FateOf says what err proves about its command: the fate of a *CallError, or of an error with a
// Fate() carry.Fate method (a server's error reply: Answered); Answered for nil; for anything else the cautious
// MaybeExecuted.
func FateOf(err error) carry.Fate {
	if err == nil {
		return carry.Answered
	}
	var ce *CallError
	if errors.As(err, &ce) {
		return ce.Fate
	}
	var f fated
	if errors.As(err, &f) {
		return f.Fate()
	}
	return carry.MaybeExecuted
}
