package beanstalkd

import (
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// What a server says instead of doing what it was asked, for errors.Is.
var (
	ErrNotFound      error = &ServerError{Code: "NOT_FOUND"}     // no such job, tube, or reservation of this connection
	ErrTimedOut      error = &ServerError{Code: "TIMED_OUT"}     // no job within the time of ReserveWithTimeout
	ErrDeadlineSoon  error = &ServerError{Code: "DEADLINE_SOON"} // a job held by this Consumer is about to be taken back
	ErrNotIgnored    error = &ServerError{Code: "NOT_IGNORED"}   // the last tube that is watched
	ErrDraining      error = &ServerError{Code: "DRAINING"}      // the server takes no more jobs
	ErrJobTooBig     error = &ServerError{Code: "JOB_TOO_BIG"}   // also of a Put that was not sent for that reason
	ErrOutOfMemory   error = &ServerError{Code: "OUT_OF_MEMORY"}
	ErrInternalError error = &ServerError{Code: "INTERNAL_ERROR"}
	// ErrBuried is the error of a Release for which the server had no memory: it has buried the job instead.
	ErrBuried error = &ServerError{Code: "BURIED"}
)

// Classes of errors that are found on this side.
var (
	// ErrNoReply is what the methods of a Cmd that read its reply return when there is none; the error of Do or of the
	// completion says why.
	ErrNoReply = errors.New("beanstalkd: command has no reply")
	// ErrNotShared is the class of every *NotSharedError.
	ErrNotShared = errors.New("beanstalkd: command must not share a connection")
	// ErrOtherTube is the error of a command for another tube than its Client is set up for; see Options.ManyTubes.
	ErrOtherTube = errors.New("beanstalkd: client is set up for another tube")
	// ErrReservationLost is the class of every *LostError.
	ErrReservationLost = errors.New("beanstalkd: reservation lost")
)

// ServerError is what the server said instead of doing what it was asked. It is an answer.
type ServerError struct {
	Code string // the word, in capitals
}

func refused(w beanstalk.Word) *ServerError { return &ServerError{Code: w.String()} }

func (e *ServerError) Error() string { return "beanstalkd: " + e.Code }

// Is matches every ServerError of the same code.
func (e *ServerError) Is(target error) bool {
	t, ok := target.(*ServerError)
	return ok && t.Code == e.Code
}

// Fate is Answered.
func (e *ServerError) Fate() carry.Fate { return carry.Answered }

// NotSharedError refuses a command before it is queued. It matches ErrNotShared.
type NotSharedError struct {
	Command string
	Why     string // what it would do to the other callers, or that it takes a reservation
	Instead string // what to use
}

func (e *NotSharedError) Error() string {
	return fmt.Sprintf("beanstalkd: %s %s; %s", e.Command, e.Why, e.Instead)
}

// Is matches ErrNotShared.
func (e *NotSharedError) Is(target error) bool { return target == ErrNotShared }

// Fate is NotSent.
func (e *NotSharedError) Fate() carry.Fate { return carry.NotSent }

// WrongTubeError says that the server refused to use a tube, and carried out the command behind that in the tube
// that was used before.
type WrongTubeError struct {
	Tube string       // the one that was meant
	ID   uint64       // of the job stored elsewhere; 0 when the command stored none
	Err  *ServerError // the refusal
}

func (e *WrongTubeError) Error() string {
	s := fmt.Sprintf("beanstalkd: tube %s was refused (%s), the command was carried out in another", e.Tube, e.Err.Code)
	if e.ID != 0 {
		s += fmt.Sprintf(", as job %d", e.ID)
	}
	return s
}

func (e *WrongTubeError) Unwrap() error { return e.Err }

// Fate is Answered.
func (e *WrongTubeError) Fate() carry.Fate { return carry.Answered }

// UnexpectedError says that a reply cannot be one to its command: the connection was out of step, and was cut.
type UnexpectedError struct {
	Command string
	Reply   string // its first word, or why it could not be read
}

func (e *UnexpectedError) Error() string {
	return fmt.Sprintf("beanstalkd: %s was answered with %s", e.Command, e.Reply)
}

// Fate is MaybeExecuted.
func (e *UnexpectedError) Fate() carry.Fate { return carry.MaybeExecuted }

// TornError says, as the cause of a reserve's error, that jobs were handed out several times in a row and none could be
// read: what followed the announcement was not a body of that length with a line end, or the connection died before.
// A beanstalkd that was killed while it wrote a job to its binlog may have such a job. It is in its tube still, and
// the next Reserve may meet it again: delete it by its ID with Consumer.Do, unless connections break there for another
// reason.
type TornError struct {
	ID    uint64 // of the last of them
	Times int    // that a job was announced
	Cause error  // that ended the last connection
}

func (e *TornError) Error() string {
	return fmt.Sprintf("beanstalkd: handed out %d times, never whole, at last job %d: %v", e.Times, e.ID, e.Cause)
}

func (e *TornError) Unwrap() error { return e.Cause }

// LostError says that a job is not this Consumer's any more: the connection that reserved it is gone, or its time to
// run is over. The server gives it to someone else, or has done so. It matches ErrReservationLost.
type LostError struct {
	ID    uint64
	Cause error // of a command that was under way, or ErrNotFound; nil when none was sent
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("beanstalkd: reservation of job %d lost", e.ID)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Is matches ErrReservationLost.
func (e *LostError) Is(target error) bool { return target == ErrReservationLost }

func (e *LostError) Unwrap() error { return e.Cause }

// Fate is that of the command: NotSent when there was none to send.
func (e *LostError) Fate() carry.Fate {
	if e.Cause == nil {
		return carry.NotSent
	}
	return fdengine.FateOf(e.Cause)
}

// sizeError refuses a job before it is sent. It matches ErrJobTooBig and fdengine.ErrTooLarge.
type sizeError struct{ size, limit int }

func (e *sizeError) Error() string {
	return fmt.Sprintf("beanstalkd: job of %d bytes, Options.MaxJobSize is %d", e.size, e.limit)
}

func (e *sizeError) Is(target error) bool {
	s, ok := target.(*ServerError)
	return target == fdengine.ErrTooLarge || ok && s.Code == "JOB_TOO_BIG"
}

func (e *sizeError) Fate() carry.Fate { return carry.NotSent }
