// Package submit reads jobs from a file, paces them, hands each to a Target and keeps the account of what
// became of them. It knows lines, NDJSON and arithmetic; it does not know which server the jobs go to, how
// they are encoded, or whether they may be sent again: that is the Target's. Memory is bounded by the window
// and the longest line, whatever the size of the input (Ledger is the stated exception).
package submit

import (
	"context"

	"github.com/fdengine/fullduplex/carry"
)

// Job is one unit of work as read from the input. The byte slices belong to the reader and are valid during
// Target.Submit only.
type Job struct {
	Line    int64  // line of the input, from 1
	ID      []byte // given, or made of Options.IDPrefix and the line
	Queue   []byte // given, or Options.Queue
	Payload []byte // the line, or the raw JSON text of the field payload; not validated as UTF-8
	Own     bool   // ID was given
	JSON    bool   // Payload is JSON text
}

// Ticket stands for one accepted job until it is settled. Tickets are recycled: a Target must not touch one
// after it called Done with it.
type Ticket struct {
	Line    int64
	ID      []byte
	Traits  Traits
	Sends   int  // set by the Target before Done: how often the job left this process, as far as it knows
	Known   bool // set by the Target before Done: it had a job of that id already, and so did not add this one
	Carrier any  // the Target's own, kept from one use of the ticket to the next (an encoded-command object)

	key    uint64 // Ledger key, when one is kept
	doubt  bool   // an earlier run may have sent it
	before int    // how often, at most
	fate   carry.Fate
	err    error
}

// Traits is what a Target makes of a job.
type Traits struct {
	Once bool // sent again, the job is there once: the target remembers its id
	Bare bool // of the job only the payload reaches the target, so that only it can be read back
	Part int  // which of several targets it goes to, from 0
}

// Target is where jobs go.
type Target interface {
	// Traits says what the target would make of job. It does not block and depends on nothing but job.
	Traits(job Job) Traits
	// Submit hands over one job. It must copy or encode job before it returns. nil means that done.Done will be
	// called exactly once for t; an error means that it will not be, and its fate (fdengine.FateOf) is the job's.
	// It may block while there is no room, until ctx ends.
	Submit(ctx context.Context, job Job, t *Ticket, done Done) error
	// Shutdown settles everything that was accepted: it waits for answers until ctx ends, then fails the rest.
	// No Done call is outstanding when it returns.
	Shutdown(ctx context.Context) error
}

// Done is told the outcome of a job. It may be called from any goroutine, several at once; it does not block.
// err is nil for a job the server took; its fate is what fdengine.FateOf says, Answered meaning that the server
// refused the job.
type Done interface{ Done(t *Ticket, err error) }
