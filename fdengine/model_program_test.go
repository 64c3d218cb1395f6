package fdengine_test

import (
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// A program is everything that one run of the model does, made from a seed: what callers ask for, what the server,
// the network, the leaser and the commands themselves do wrong, and how it ends. What is random in a run of a
// program is only the interleaving of goroutines.
type program struct {
	seed    uint64
	opt     modelOptions
	callers []caller
	dials   []dialFault // by number; later dials are sound
	events  []event
	leases  map[int]leaseFault // by number of the Lease
	putFail map[int]bool       // the n-th Put panics
	closing []closing
	fenced  bool // a dial ends what older connections still had to do, as a fence does
	surplus bool // some answers come twice: replies may then belong to others
	loose   bool // something in it blocks or stops the clock's oracles: completions that block
	heal    bool // ends with everything sound, one more command, and a Shutdown that has time
}

type modelOptions struct {
	fdengine.Options
	limiter  int // percent of Allow that deny; 0 = no limiter
	observer bool
	reroute  rerouteMode
	pushFail int // percent of OnPush that panic or exit
}

type rerouteMode uint8

const (
	rerouteNone  rerouteMode = iota
	rerouteHere              // every carry comes back to the engine it left
	rerouteMixed             // some are failed, some forgotten half way by a panic
	rerouteAway              // everything goes to a second engine, and from there back
)

type caller struct {
	steps []step
}

type op uint8

const (
	opDo op = iota
	opSubmit
	opTry
	opBatch
	opFlush
	opReset
	opPing
	opPause
	opLot
)

var opNames = [...]string{"Do", "Submit", "TrySubmit", "DoBatch", "Flush", "Reset", "Ping", "pause", "SubmitBatch"}

// step is one call of a caller. stream: through the caller's stream of that number; -1 = through the engine.
type step struct {
	op     op
	stream int
	wait   time.Duration // before the call
	ctx    leave
	cmds   []*plan
}

// leave is how the context of a call ends.
type leave struct {
	how leaveHow
	at  time.Duration
}

type leaveHow uint8

const (
	stays     leaveHow = iota
	goneFirst          // before the call
	cancelled          // after at
	deadline           // by a deadline after at
	onArrival          // when the server takes the command up
	onDecode           // from inside DecodeReply
)

var leaveNames = [...]string{"", "gone before", "cancel", "deadline", "cancel on arrival", "cancel in decode"}

// frames of a command on the wire.
type shape uint8

const (
	plain  shape = iota
	noted        // no reply
	asking       // ASKING in front, its reply skipped
	double       // another command in front, both replies delivered
)

type fault uint8

const (
	faultNone fault = iota
	faultError
	faultPanic
	faultExit
)

var faultNames = [...]string{"", "fails", "panics", "exits"}

// plan is one command.
type plan struct {
	id      int
	token   string
	class   carry.Class
	budget  int // as in Spec
	shape   shape
	timeout time.Duration
	size    int
	encode  fault
	decode  fault
	judge   judgeMode
	times   int // of judge
	done    doneMode
	child   *plan // submitted by the completion, done == doneTries
	acts    []act // by attempt; later ones are sound
}

type judgeMode uint8

const (
	judgeNot    judgeMode = iota
	judgeKeep             // delivers
	judgeRetry            // sends it again a number of times although it ran
	judgePanics           // once
	judgeExits            // once
	judgeRetire
	judgeCuts
)

var judgeNames = [...]string{"", "judges", "judges: again", "judge panics", "judge exits", "judges: retire", "judges: cut"}

type doneMode uint8

const (
	doneTells doneMode = iota
	donePanics
	doneExits
	doneTries
	doneCloses
	doneShuts
	doneBlocks
)

var doneNames = [...]string{"", "done panics", "done exits", "done submits", "done closes", "done shuts", "done blocks"}

// act is what the server does with one attempt.
type act struct {
	scripted.Action
	name string
	big  int // length of the answer, padded
}

// dialFault is what is wrong with one connection from the start.
type dialFault struct {
	name string
	err  error
	arm  func(client, server *memnet.Conn)
}

// event is something that happens to the world at a time.
type event struct {
	at   time.Duration
	name string
	do   func(w *world)
}

type leaseFault uint8

const (
	leaseOK leaseFault = iota
	leaseFails
	leasePanics
	leaseExits
	leasePermanent
	leaseEmpty
)

var leaseNames = [...]string{"", "lease fails", "lease panics", "lease exits", "lease fails for good", "lease returns nothing"}

// closing is one end of the engine: at after the start, or, at < 0, when all callers are done.
type closing struct {
	at    time.Duration
	shut  bool // Shutdown with time, else Close
	bound time.Duration
}

// all calls f for every plan, children included.
func (p *program) all(f func(*plan)) {
	for _, c := range p.callers {
		for _, s := range c.steps {
			for _, pl := range s.cmds {
				for ; pl != nil; pl = pl.child {
					f(pl)
				}
			}
		}
	}
}
