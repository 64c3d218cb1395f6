package scripted

import "time"

// Action is what the server does with one request. The zero value executes it and answers. Fields combine;
// where they contradict, the one further up wins.
type Action struct {
	Delay      time.Duration // wait first; the requests behind it on this connection wait too
	PushBefore []byte        // raw bytes before the answer, such as a push frame

	Refuse     string // answer this error line (without '-' and CRLF), do not execute
	DropBefore bool   // end the connection, do not execute

	DropAfter bool // execute, then end the connection without an answer
	HalfReply bool // execute, write the first half of the answer, end the connection
	Stall     bool // execute, then do nothing more on this connection but read and log
	Mute      bool // execute this and what follows on this connection, answer none of it
	NoReply   bool // execute, leave this one unanswered and go on

	Reply     []byte // raw answer in place of the token
	Surplus   []byte // raw bytes right behind the answer
	PushAfter []byte // raw bytes behind those

	Reset bool // where the action ends the connection: by a reset
	Close bool // end the connection after the answer was written
}

// Refuse answers an error line such as "LOADING soon", unexecuted.
func Refuse(line string) Action { return Action{Refuse: line} }

// Reply executes and answers with raw bytes.
func Reply(raw string) Action { return Action{Reply: []byte(raw)} }

// Delay executes and answers after d.
func Delay(d time.Duration) Action { return Action{Delay: d} }

// DropBefore ends the connection, unexecuted.
func DropBefore() Action { return Action{DropBefore: true} }

// DropAfter executes and ends the connection without an answer.
func DropAfter() Action { return Action{DropAfter: true} }

// HalfReply executes, answers half and ends the connection.
func HalfReply() Action { return Action{HalfReply: true} }

// Stall executes and falls silent for good; nothing behind it is executed.
func Stall() Action { return Action{Stall: true} }

// Mute executes this and all that follows and answers none of it: a zombie.
func Mute() Action { return Action{Mute: true} }

// Surplus answers twice.
func Surplus(raw string) Action { return Action{Surplus: []byte(raw)} }

// PushFrame encodes words as a push frame.
func PushFrame(words ...string) []byte {
	frame := AppendRequest(nil, words...)
	frame[0] = '>'
	return frame
}
