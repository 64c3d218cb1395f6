package memnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// ErrBlackHole, returned by OnDial, makes the dial hang until its context ends, as a host that drops packets does.
var ErrBlackHole = errors.New("memnet: dial swallowed")

// backlog is how many connections wait for Accept before dials are refused.
const backlog = 512

// Network is a set of listeners by address. The zero value is ready; set the fields before the first Dial.
type Network struct {
	Pipe Options // the sizes of each connection's buffers; its addresses are filled in

	// OnDial, when set, sees each connection before the listener does. n counts all dials of the network from 1.
	// It may arm faults; an error refuses the dial (ErrBlackHole: hangs it). It runs on the dialer's goroutine
	// with no lock held, and may be called for several dials at once.
	OnDial func(n int, client, server *Conn) error

	mu struct {
		sync.Mutex
		listeners map[string]*Listener
		dials     int
		perAddr   map[string]int
		open      []*Conn // client ends, closed ones pruned now and then
	}
}

// Dial connects to the listener at addr; network is ignored. Without a listener it fails with ECONNREFUSED. It
// has the signature of a dial option and blocks only in OnDial.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	no := n.count(addr)
	if err := ctx.Err(); err != nil {
		return nil, dialError(addr, err)
	}
	o := n.Pipe
	o.ClientAddr, o.ServerAddr = fmt.Sprintf("client-%d", no), addr
	client, server := Pipe(o)
	if err := n.connect(ctx, no, addr, client, server); err != nil {
		_ = client.Close()
		_ = server.Close()
		return nil, dialError(addr, err)
	}
	return client, nil
}

func (n *Network) connect(ctx context.Context, no int, addr string, client, server *Conn) error {
	if n.OnDial != nil {
		err := n.OnDial(no, client, server)
		if errors.Is(err, ErrBlackHole) {
			<-ctx.Done()
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	l := n.mu.listeners[addr]
	n.mu.Unlock()
	if l == nil || !l.offer(server) {
		return os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pruneLocked()
	n.mu.open = append(n.mu.open, client)
	return nil
}

func (n *Network) count(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.perAddr == nil {
		n.mu.perAddr = map[string]int{}
	}
	n.mu.dials++
	n.mu.perAddr[addr]++
	return n.mu.dials
}

// Dials is how many dials were begun, failed ones included.
func (n *Network) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.dials
}

// DialsTo is Dials for one address.
func (n *Network) DialsTo(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.perAddr[addr]
}

// Open is how many dialed connections were not closed by the dialer yet.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pruneLocked()
	return len(n.mu.open)
}

// pruneLocked holds the lock of the network while it takes those of pairs, never the other way round.
func (n *Network) pruneLocked() {
	kept := n.mu.open[:0]
	for _, c := range n.mu.open {
		if !c.Closed() {
			kept = append(kept, c)
		}
	}
	clear(n.mu.open[len(kept):])
	n.mu.open = kept
}

func dialError(addr string, err error) error {
	return &net.OpError{Op: "dial", Net: "mem", Addr: Addr(addr), Err: err}
}
