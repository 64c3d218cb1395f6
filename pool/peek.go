package pool

import (
	"errors"
	"net"
	"os"
	"time"
)

// errStray: an idle connection has bytes to read that nobody asked for, or was put with unparsed ones. A later
// command would take them for its reply.
var errStray = errors.New("unexpected bytes on an idle connection")

// peekWait bounds the read that stands in for a peek where there is none.
const peekWait = time.Millisecond

// peek looks at an idle raw connection: nil when there is nothing to read, io.EOF when the peer closed it,
// errStray when there is data (on TLS: any record), or the socket's error. It does not block where sockets can be
// peeked (see peekSocket); elsewhere, and for connections that are no sockets, it may take peekWait and a stray
// byte is consumed, which is no loss since the connection is closed for it.
func peek(raw net.Conn) error {
	if ok, err := peekSocket(raw); ok {
		return err
	}
	return peekByRead(raw)
}

func peekByRead(raw net.Conn) error {
	if err := raw.SetReadDeadline(time.Now().Add(peekWait)); err != nil {
		return err
	}
	var b [1]byte
	n, err := raw.Read(b[:])
	switch {
	case n > 0:
		return errStray
	case errors.Is(err, os.ErrDeadlineExceeded):
		return raw.SetReadDeadline(time.Time{})
	case err == nil:
		return errStray // a Read that returns nothing and no error breaks io.Reader's contract
	}
	return err
}
