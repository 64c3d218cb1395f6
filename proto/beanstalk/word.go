// Package beanstalk is the text protocol of beanstalkd as bytes: it finds where replies end, takes them apart, and
// encodes requests that cannot be anything but the one request meant. It knows words, lengths, names and line
// ends. It does not know connections, what a refusal means for a command, or what may be sent twice: that is the
// binding's. It is pure; whoever owns the bytes guards them.
//
// Source: doc/protocol.txt of beanstalkd 1.12, and what that server answers.
package beanstalk

// Word is the first word of a reply: which one it is.
type Word uint8

// The words, by what their line holds. Unknown is no word of the protocol.
const (
	Unknown Word = iota

	Inserted // INSERTED id
	Buried   // BURIED, or BURIED id in answer to a put
	Using    // USING tube
	Reserved // RESERVED id bytes, and a body
	Found    // FOUND id bytes, and a body
	OK       // OK bytes, and a body
	Watching // WATCHING count
	Kicked   // KICKED, or KICKED count in answer to a kick
	Deleted
	Released
	Touched
	Paused
	TimedOut     // no job came within the time of a reserve-with-timeout
	DeadlineSoon // a job reserved on this connection is about to be taken back

	// What follows are refusals: the request was not carried out.
	NotFound
	NotIgnored // the last tube that is watched
	Draining   // no puts any more
	JobTooBig
	OutOfMemory
	ExpectedCRLF   // the body of a put does not end where its length says: the server is out of step
	BadFormat      // the same may hold
	UnknownCommand // the same may hold
	InternalError  // a fault of the server; it may have carried out the request
	words          // how many there are
)

// form is what stands behind a word.
type form uint8

const (
	bare       form = iota
	number          // an id or a count
	mayNumber       // nothing, or that
	name            // of a tube
	size            // of the body that follows
	numberSize      // both
)

type shape struct {
	text string
	form form
}

// shapes is never written.
var shapes = [words]shape{
	Unknown:        {"", bare},
	Inserted:       {"INSERTED", number},
	Buried:         {"BURIED", mayNumber},
	Using:          {"USING", name},
	Reserved:       {"RESERVED", numberSize},
	Found:          {"FOUND", numberSize},
	OK:             {"OK", size},
	Watching:       {"WATCHING", number},
	Kicked:         {"KICKED", mayNumber},
	Deleted:        {"DELETED", bare},
	Released:       {"RELEASED", bare},
	Touched:        {"TOUCHED", bare},
	Paused:         {"PAUSED", bare},
	TimedOut:       {"TIMED_OUT", bare},
	DeadlineSoon:   {"DEADLINE_SOON", bare},
	NotFound:       {"NOT_FOUND", bare},
	NotIgnored:     {"NOT_IGNORED", bare},
	Draining:       {"DRAINING", bare},
	JobTooBig:      {"JOB_TOO_BIG", bare},
	OutOfMemory:    {"OUT_OF_MEMORY", bare},
	ExpectedCRLF:   {"EXPECTED_CRLF", bare},
	BadFormat:      {"BAD_FORMAT", bare},
	UnknownCommand: {"UNKNOWN_COMMAND", bare},
	InternalError:  {"INTERNAL_ERROR", bare},
}

// String is the word as it is on the wire; empty for Unknown.
func (w Word) String() string {
	if w < words {
		return shapes[w].text
	}
	return ""
}

// Refusal says whether the word tells that the request was not carried out.
func (w Word) Refusal() bool { return w >= NotFound && w < words }

// WordOf finds the word that text is; Unknown for any other text.
func WordOf(text []byte) Word {
	for w := Inserted; w < words; w++ {
		if string(text) == shapes[w].text {
			return w
		}
	}
	return Unknown
}
