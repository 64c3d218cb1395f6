package redis

import (
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/proto/resp"
)

var (
	// Nil is what reading a null reply as a value returns: the key, field or member does not exist.
	Nil = errors.New("redis: nil")
	// ErrNoReply is what the reply methods of a Cmd return when it was not sent, has not completed, or failed
	// without an answer; the error of Do or of the completion says why.
	ErrNoReply = errors.New("redis: command has no reply")
	// ErrNotShared is the class of every *NotSharedError.
	ErrNotShared = errors.New("redis: command must not share a connection")
)

// ServerError is an error reply. It is an answer: the server has dealt with the command.
type ServerError struct {
	Code    string // first word in capitals (ERR, WRONGTYPE, READONLY); empty when the server gave none
	Message string // what follows it
}

// newServerError splits the text of an error reply.
func newServerError(e resp.Error) *ServerError {
	code := e.Code()
	if code == "" {
		return &ServerError{Message: string(e)}
	}
	return &ServerError{Code: code, Message: string(e[min(len(code)+1, len(e)):])}
}

// Error gives code and message as the server sent them.
func (e *ServerError) Error() string { return "redis: " + e.text() }

func (e *ServerError) text() string {
	if e.Code == "" || e.Message == "" {
		return e.Code + e.Message
	}
	return e.Code + " " + e.Message
}

// Fate is Answered.
func (e *ServerError) Fate() carry.Fate { return carry.Answered }

// NotSharedError refuses a command that would block the connection, change its state or change how many replies
// it gives. Nothing was queued. It matches ErrNotShared.
type NotSharedError struct {
	Command string // in capitals, with its subcommand or option where that decides
	Why     string // what it would do to the other callers
	Instead string // what to use
}

func (e *NotSharedError) Error() string {
	return fmt.Sprintf("redis: %s must not share a connection: it %s; %s", e.Command, e.Why, e.Instead)
}

// Is matches ErrNotShared.
func (e *NotSharedError) Is(target error) bool { return target == ErrNotShared }

// Fate is NotSent.
func (e *NotSharedError) Fate() carry.Fate { return carry.NotSent }

// own turns an error of package resp into this package's: null becomes Nil, an error reply a *ServerError.
func own(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, resp.ErrNull) {
		return Nil
	}
	var e resp.Error
	if errors.As(err, &e) {
		return newServerError(e)
	}
	return err
}
