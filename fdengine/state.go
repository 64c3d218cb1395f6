package fdengine

import "fmt"

// state is where an engine is in its life. Only setState moves it, under the log's lock.
//
//	idle     -> leasing   there is work
//	leasing  -> running   a connection has answered its handshake
//	leasing  -> backoff   no connection
//	running  -> ending    stop writing, read what is in flight: idle, recycle, retire, graceful
//	running  -> backoff   the connection was cut
//	ending   -> backoff   it was cut before the last answer, or retired
//	ending   -> idle      put back clean
//	backoff  -> idle
//	any      -> closed    final
type state uint8

const (
	stateIdle state = iota
	stateLeasing
	stateRunning
	stateEnding
	stateBackoff
	stateClosed
)

var stateNames = [...]string{"idle", "leasing", "running", "ending", "backoff", "closed"}

func (s state) String() string { return stateNames[s] }

// stateMoves is the diagram above; a test compares it with the one in docs/ENGINE.md.
var stateMoves = map[state][]state{
	stateIdle:    {stateLeasing, stateClosed},
	stateLeasing: {stateRunning, stateBackoff, stateClosed},
	stateRunning: {stateEnding, stateBackoff, stateClosed},
	stateEnding:  {stateBackoff, stateIdle, stateClosed},
	stateBackoff: {stateIdle, stateClosed},
}

// setState moves the engine; false when it is closed, which is final. An illegal move is our bug.
func (e *Engine) setState(to state) bool {
	if e.state == stateClosed {
		return false
	}
	for _, s := range stateMoves[e.state] {
		if s == to {
			e.state = to
			return true
		}
	}
	panic(fmt.Sprintf("fdengine: invariant: state %v cannot become %v", e.state, to))
}

// reason is why a session ended, or is ending.
type reason uint8

const (
	reasonNone     reason = iota
	reasonGraceful        // Shutdown, all answered: Put
	reasonIdle            // nothing to do for long: Put
	reasonRecycle         // max hold or handoff mark: Put
	reasonRetire          // unfit for more, still aligned: Remove
	reasonCut             // dead or misaligned: Remove
)

var reasonNames = [...]string{"none", "graceful", "idle", "recycle", "retire", "cut"}

func (r reason) String() string { return reasonNames[r] }
