package redis

// barrier is why a command must not share a connection; zero: it may.
type barrier uint8

const (
	shares barrier = iota
	blocks
	subscribes
	transacts
	setsUp
	changesState
	ends
	noReply
)

// describe says what such a command would do to the other callers and what to use in its place.
func (b barrier) describe() (why, instead string) {
	const own = "run it on a connection of its own"
	switch b {
	case blocks:
		return "would keep the replies of all other callers waiting", own
	case subscribes:
		return "makes the server send messages that answer no command", own
	case transacts:
		return "would take in the commands of other callers", "use a Tx; WATCH needs a connection of its own"
	case setsUp:
		return "would change the session of all other callers", "set it in Options"
	case changesState:
		return "would change how the server treats all other callers", own
	case ends:
		return "would end the connection of all other callers", "use Client.Shutdown or Close"
	case noReply:
		return "does not answer with exactly one reply", own
	}
	return "", ""
}

// refuse makes the error for a word of the table.
func (b barrier) refuse(word []byte) error {
	why, instead := b.describe()
	name := make([]byte, len(word))
	for i, c := range word {
		if c == '|' {
			c = ' '
		}
		name[i] = c
	}
	return &NotSharedError{Command: string(name), Why: why, Instead: instead}
}
