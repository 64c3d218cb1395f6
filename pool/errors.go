package pool

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"

	"github.com/fdengine/fullduplex/panics"
)

var (
	// ErrClosed is returned by Lease once the pool is closed, and by Leases that were waiting then.
	ErrClosed = errors.New("pool closed")
	// ErrFull is returned by Lease under Options.FailWhenFull when all Size connections are out or being dialed.
	ErrFull = errors.New("pool full")
	// ErrDialTimeout is the Err of a DialError whose dial took longer than Options.DialTimeout. It does not match
	// context.DeadlineExceeded, so that it cannot be taken for the end of the caller's ctx.
	ErrDialTimeout = errors.New("dial timeout")
)

// Phase is the part of a dial that failed.
type Phase uint8

const (
	PhaseConnect     Phase = iota // DialFunc, socket options
	PhaseTLS                      // TLS handshake
	PhaseCredentials              // Options.Credentials
	PhaseHandshake                // Options.Handshake
	PhaseOnConnect                // Options.OnConnect
	phases                        // how many there are
)

var phaseNames = [phases]string{"connect", "tls", "credentials", "handshake", "onconnect"}

func (ph Phase) String() string {
	if ph < phases {
		return phaseNames[ph]
	}
	return fmt.Sprintf("Phase(%d)", uint8(ph))
}

// DialError says that no connection could be made: nothing of any command was sent on it.
type DialError struct {
	Addr  string
	Phase Phase
	Err   error // ErrDialTimeout, a *panics.Error, or what the phase returned
}

func (e *DialError) Error() string { return fmt.Sprintf("dial %s: %v: %v", e.Addr, e.Phase, e.Err) }

func (e *DialError) Unwrap() error { return e.Err }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks err as one that will not heal by dialing again (a wrong password, a missing right), for
// IsPermanent. For the use of Credentials, Handshake, OnConnect and DialFunc. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err was marked by Permanent, or is a failed verification of the server's
// certificate.
// An error whose own methods panic is not.
func IsPermanent(err error) (permanent bool) {
	_ = panics.Catch("error", func() error {
		permanent = is[*permanentError](err) || is[*tls.CertificateVerificationError](err) ||
			is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err)
		return nil
	})
	return permanent
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// peerClosed reports whether why says that the peer ended the connection itself. Cautious: an unexpected EOF may
// be a parser's own word and does not count, nor does what code panicked with.
// It runs the methods of foreign errors, behind a border: an error that panics says nothing.
func peerClosed(why error) (closed bool) {
	_ = panics.Catch("error", func() error {
		closed = (errors.Is(why, io.EOF) || peerReset(why)) && !is[*panics.Error](why)
		return nil
	})
	return closed
}
