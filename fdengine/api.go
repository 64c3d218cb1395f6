package fdengine

import (
	"context"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

// Command is one request and the place its reply goes to. The engine calls AppendRequest once for each submit, on the
// caller's goroutine, and at most one DecodeReply; after Do returned or the completion ran it never touches
// the command again.
type Command interface {
	// AppendRequest appends the whole encoded request (all frames of it) to dst and returns the result. An
	// error rejects the call with fate NotSent; nothing is queued. It must not keep dst. A result that is no extension of
	// dst is copied.
	AppendRequest(dst []byte) ([]byte, error)
	// DecodeReply runs on the reader goroutine, at most once, never after the caller was released. It must not
	// block: all replies of the connection wait behind it. Its error becomes the call's error.
	DecodeReply(r Reply) error
}

// Reply is what a command is answered with.
type Reply struct {
	Frame []byte // all frames after Spec.Skip, concatenated; valid during the call only
	Sends int    // how many sends of the command left this process, this one included
	Maybe bool   // an earlier send may have run as well
}

// Speccer is the optional method by which a Command says what it is. Without it the zero Spec holds. It is
// called once, on the caller's goroutine, before AppendRequest.
type Speccer interface{ Spec() Spec }

// NoReply, as Spec.Frames, marks a command that the server does not answer. It settles when its last byte is
// accepted, takes no slot in the window and is never sent again.
const NoReply = -1

// Spec describes a command. The zero value is cautious: NoRetry, one reply frame, the engine's defaults.
type Spec struct {
	Class   carry.Class   // NoRetry (zero) or Replay
	Budget  int           // re-sends that may have executed; 0 = Options.Budget, negative = none
	Frames  int           // reply frames on the wire: 0 = one, NoReply = none, n = n frames (at most 65,535); what it asks for must have no effect before its last byte arrived
	Skip    int           // leading frames that are not for DecodeReply (ASKING, use); less than Frames
	Route   uint64        // slot or key hash; opaque to the engine, kept for re-routing
	Block   time.Duration // how long the server may hold the reply on purpose (BLPOP, reserve): added to ReadTimeout; negative = for ever
	Opaque  bool          // a refusal may be user code's own word (a script): it does not prove that nothing ran
	Timeout time.Duration // settle by submit + Timeout, within about 10 ms; 0 = none. Cheaper than a ctx deadline
}

// Completion is told the outcome of a Submit. One object may serve many commands. Complete runs on an engine
// goroutine, exactly once per accepted command, and stalls that connection's replies while it blocks: only
// TrySubmit, Close and `go Shutdown` are allowed in it. A panic in it is counted and changes nothing.
type Completion interface{ Complete(cmd Command, err error) }

// Submitter is what SubmitAll needs; Engine, Stream and the bindings' clients have it.
type Submitter interface {
	Submit(ctx context.Context, cmd Command, done Completion) error
}

// Kind is what Protocol.Next found.
type Kind uint8

const (
	KindReply   Kind = iota // answers the oldest command in flight
	KindRefusal             // answers it too, but Verdict must say what it means first
	KindPush                // belongs to no command; goes to Options.OnPush
)

// Protocol frames and judges what one connection receives. The engine makes a new value for each session, so
// it may remember its scan position between calls (a stateless one is quadratic in the size of a reply).
// Both methods run on the reader goroutine; a panic in them cuts the connection.
type Protocol interface {
	// Next looks for one whole frame at the start of buf. n > 0: the first n bytes are a frame of that kind.
	// n = 0: incomplete; at least need bytes from the start of the frame are required (need > len(buf), the
	// best lower bound known, so that a frame over Options.MaxReply is refused before it is buffered). The next
	// call gets the same frame start with more bytes; buf may have moved. err: the stream is lost.
	Next(buf []byte) (n, need int, kind Kind, err error)
	// Verdict judges a refusal frame, before DecodeReply. maybe: an earlier send of the command may have run.
	Verdict(frame []byte, maybe bool) Verdict
}

// Verdicter is the optional method by which a command judges its own reply, in place of Protocol.Verdict: it is
// asked for each reply, refusal or not, with all its frames (skipped ones too).
type Verdicter interface {
	Verdict(frames []byte, maybe bool) Verdict
}

// Then is what happens to the answered command.
type Then uint8

const (
	Deliver   Then = iota // it is the answer
	RetryHere             // send it again on this engine after a backoff
	Reroute               // give it to Options.Rerouter; without one this is Deliver
)

// Ran says whether the server ran the refused command.
type Ran uint8

const (
	RanMaybe Ran = iota // only a Replay command may go again, charged to its budget
	RanNo               // a NoRetry command may go again too, free of the budget
)

// ConnEnd is what happens to the connection.
type ConnEnd uint8

const (
	Keep   ConnEnd = iota
	Retire         // stop writing, read what is in flight, then Remove
	Cut            // the stream is no longer aligned: close, read nothing more
)

// Verdict is a judgement on one reply. The zero value delivers it and keeps the connection.
type Verdict struct {
	Then  Then
	Ran   Ran
	Conn  ConnEnd
	After time.Duration // the server's own word on when to come back, at most a minute; 0 = the engine's backoff
	Hint  Hint
}

// Hint tells a Rerouter what a refusal knew.
type Hint struct {
	Addr   string // where the server said to go; empty = it did not say
	Term   uint64 // epoch of the one who said so; 0 = none
	Prefix []byte // bytes to put before the request there (an encoded ASKING), at most 65,535; copied by the engine
	Frames int    // reply frames the prefix adds, to be skipped; at most 255
}

// Rerouter decides where commands go that this engine cannot serve: those answered by a Reroute verdict, and,
// after a connection died, all that is still to be sent; why says which. It runs on the engine goroutine, with the
// carries in submit order. Each Carry must be given to some engine's Adopt, or failed with Carry.Fail.
type Rerouter interface {
	Reroute(why error, cs []*Carry)
}

// Limiter admits written chunks. Allow is asked once per claim on the engine goroutine, before the write; an
// error (or a panic) denies it: the commands of that claim fail with it. ReportResult is called once per
// allowed claim: nil when all its replies arrived, else the transport error.
type Limiter interface {
	Allow() error
	ReportResult(err error)
}
