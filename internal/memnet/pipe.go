// Package memnet is a network in memory for tests: connections with bounded buffers that can be cut, stalled,
// slowed and reset at a chosen byte. It knows nothing about what is sent. Everything that blocks in it waits on
// a sync.Cond and every delay is a time.AfterFunc, so it may be used inside a testing/synctest bubble, where a
// blocked call counts as durably blocked and time is fake. For tests only.
package memnet

import (
	"net"
	"sync"
)

// DefaultBuffer is the size of a direction's buffer in bytes when Options leave it zero.
const DefaultBuffer = 64 << 10

// Options size a Pipe. Each buffer holds the bytes that one direction has accepted and that its reader has not
// taken: zero means DefaultBuffer, a negative value no buffer at all (a byte is accepted only when a reader is
// waiting for it).
type Options struct {
	ToServer int // bytes from the client to the server
	ToClient int // bytes from the server to the client

	ClientAddr, ServerAddr string // what LocalAddr and RemoteAddr say; default "client" and "server"
}

// Pipe makes a connected pair. Both ends must be closed by their holders; a cut does not do that.
func Pipe(o Options) (client, server *Conn) {
	p := &pair{}
	for i, size := range [2]int{o.ToServer, o.ToClient} {
		if size == 0 {
			size = DefaultBuffer
		}
		p.mu.lanes[i].init(p, size)
	}
	if o.ClientAddr == "" {
		o.ClientAddr = "client"
	}
	if o.ServerAddr == "" {
		o.ServerAddr = "server"
	}
	client = &Conn{p: p, side: 0, local: Addr(o.ClientAddr), remote: Addr(o.ServerAddr)}
	server = &Conn{p: p, side: 1, local: Addr(o.ServerAddr), remote: Addr(o.ClientAddr)}
	return client, server
}

// Addr is an address in memory.
type Addr string

func (Addr) Network() string  { return "mem" }
func (a Addr) String() string { return string(a) }

var _ net.Addr = Addr("")

// pair is the state both ends share. End i writes into lane i and reads from lane 1-i. One lock guards it all;
// it is held for memory copies only.
type pair struct {
	mu struct {
		sync.Mutex
		ends  [2]end
		lanes [2]lane
	}
}

// end is what one holder did with its side.
type end struct {
	closed      bool
	inexact     bool
	read, write deadline
}

// dieLocked ends the connection under both holders: nothing more is accepted in either direction, and what was
// accepted and not read is dropped or still delivered, as how says. Readers see the end after it.
func (p *pair) dieLocked(how Cut) {
	for i := range p.mu.lanes {
		p.mu.lanes[i].dieLocked(how)
	}
}
