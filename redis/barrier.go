package redis

// barrier is why a command must not share a connection; zero: it may.
type barrier uint8

const (
	shares barrier = iota
	blocks
	subscribes
	transacts
	watches
	setsUp
	changesState
	ends
	noReply
	breaks
)

// describe says what such a command would do to the other callers and what to use in its place.
func (b barrier) describe() (why, instead string) {
	switch b {
	case blocks:
		return "would keep the replies of all other callers waiting", "use Client.Blocking, or a connection from Client.Lend"
	case subscribes:
		return "makes the server send messages that answer no command", "use Client.Subscribe and its relatives"
	case transacts:
		return "would take in the commands of other callers", "use a Tx"
	case watches:
		return "would watch for all other callers", "use Client.Watch"
	case setsUp:
		return "would change the session of all other callers", "set it in Options, or use a connection from Client.Lend"
	case changesState:
		return "would change how the server treats all other callers", "use a connection from Client.Lend"
	case ends:
		return "would end the connection of all other callers", "use Client.Shutdown or Close"
	case noReply:
		return "does not answer with exactly one reply", "this client does not offer it"
	case breaks:
		return "would undo how the session was set up", "set it up in Options"
	}
	return "", ""
}

// lendable says whether a command with this barrier may run on a connection that its caller alone uses.
func (b barrier) lendable() bool {
	switch b {
	case shares, blocks, watches, setsUp, changesState:
		return true
	}
	return false
}

// lasting says whether it leaves something behind on the connection, which the next borrower must not find.
func (b barrier) lasting() bool { return b != shares && b != blocks }

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
