package carry

// Fate says whether a command may have run on the server. The zero value is the cautious one.
type Fate uint8

const (
	// MaybeExecuted: over all its sends, some send's last byte was accepted by the kernel and no refusal
	// answered that send. The server may have run it, or may still.
	MaybeExecuted Fate = iota
	// NotSent: the server cannot have run it. Each of its sends was either cut before its last byte was
	// accepted, or answered by a refusal.
	NotSent
	// Answered: the server replied, and the reply decides.
	Answered
)

func (f Fate) String() string {
	switch f {
	case NotSent:
		return "not sent"
	case Answered:
		return "answered"
	}
	return "maybe executed"
}

// Class says what may be done with a command that may have run. The zero value is the cautious one.
type Class uint8

const (
	// NoRetry: once it may have run it is never sent again, by any path.
	NoRetry Class = iota
	// Replay: running it again does no harm (idempotent, or deduplicated by the server), within its budget.
	Replay
)

func (c Class) String() string {
	if c == Replay {
		return "replay"
	}
	return "no retry"
}
