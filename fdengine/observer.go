package fdengine

import (
	"time"

	"github.com/fdengine/fullduplex/carry"
)

// EventKind says what an Event reports.
type EventKind uint8

const (
	EventCompleted    EventKind = iota // Samples: commands that settled, on every terminal path
	EventWrote                         // Commands and Bytes of one claim
	EventRetried                       // Commands kept for another send after a cut or a refusal
	EventSessionStart                  // Addr
	EventSessionEnd                    // Addr, Reason, Err
	EventLeaseFailed                   // Err
	EventStuck                         // a completion or hook has blocked for Took
)

// Sample is one settled command.
type Sample struct {
	Took  time.Duration // from submit, on the engine's coarse clock (about 5 ms)
	Fate  carry.Fate
	Sends int
	Err   error
}

// Event is one thing that happened, per write or read chunk rather than per command.
type Event struct {
	Kind     EventKind
	Commands int
	Bytes    int
	Samples  []Sample // valid during the call
	Addr     string
	Reason   string
	Err      error
	Took     time.Duration
}

// Observer is told of events. It is called from the engine's goroutines, possibly several at once; it must not
// block. A panic in it is counted and harmless. Without one nothing is measured.
type Observer interface{ Observe(Event) }
