package beanstalk

import "fmt"

// ProtocolError says that what was received is not the protocol: nothing behind it can be understood.
type ProtocolError struct {
	Line   string // the offending line as far as it was looked at, at most 64 bytes of it
	Reason string
}

func (e *ProtocolError) Error() string { return fmt.Sprintf("beanstalk: %s: %q", e.Reason, e.Line) }

// fault copies at most 64 bytes of line.
func fault(line []byte, reason string) *ProtocolError {
	return &ProtocolError{Line: string(line[:min(len(line), 64)]), Reason: reason}
}

// NameError says why a tube cannot have that name.
type NameError struct {
	Name   string // at most MaxName+1 bytes of it
	Reason string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("beanstalk: tube name %q %s", e.Name, e.Reason)
}
