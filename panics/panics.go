// Package panics is the border between the library and code it did not write. It turns a panic, or a
// runtime.Goexit, into a value that names the border it crossed. It knows nothing about connections or
// commands: its callers decide what the failure costs. It holds the only recover of the module; a test greps
// for others.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrGoexit is the Value of an Error whose code called runtime.Goexit (testing.T.FailNow does) instead of
// panicking.
var ErrGoexit = errors.New("runtime.Goexit called")

// Error says that foreign code panicked, or ended its goroutine, inside a border.
type Error struct {
	Boundary string // which border: a fixed word such as "DecodeReply"
	Value    any    // what was passed to panic, or ErrGoexit
	Stack    []byte // the stack at the panic, as debug.Stack prints it
}

// Error gives the border and the value, not the stack.
func (e *Error) Error() string { return fmt.Sprintf("panic in %s: %v", e.Boundary, e.Value) }

// Unwrap returns the panic value when it is an error, so that errors.Is sees through the border.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Catch runs f on the calling goroutine and returns what f returns; a panic in f becomes an *Error. A
// runtime.Goexit in f cannot be stopped: Catch does not return then, and the goroutine goes on unwinding.
// Use Guard to learn of it, or Isolate to survive it.
func Catch(boundary string, f func() error) error { return Guard(boundary, nil, f) }

// Guard is Catch with a word about Goexit: when f calls runtime.Goexit, exit is called with the *Error on the
// dying goroutine, from inside its unwinding, and Guard does not return. A nil exit is allowed.
func Guard(boundary string, exit func(*Error), f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		// Since Go 1.21 recover is non-nil for panic(nil) too, so nil here means Goexit.
		if v := recover(); v != nil {
			err = &Error{Boundary: boundary, Value: v, Stack: debug.Stack()}
			return
		}
		if exit != nil {
			exit(&Error{Boundary: boundary, Value: ErrGoexit, Stack: debug.Stack()})
		}
	}()
	err = f()
	returned = true
	return err
}

// Isolate runs f on a goroutine of its own and waits for it, so that a Goexit in f becomes an *Error like a
// panic does. It costs a goroutine: for rare calls such as dialing, not for the path of a command.
func Isolate(boundary string, f func() error) error {
	done := make(chan error, 1)
	// Exactly one of the two sends runs: Guard either returns or calls exit.
	go func() { done <- Guard(boundary, func(e *Error) { done <- e }, f) }()
	return <-done
}
