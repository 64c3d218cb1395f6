package fdengine_test

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// writing is one write on a connection.
type writing struct {
	byReader bool
	n        int // bytes accepted
	from     int // of so many
}

// turns is who wrote on the connections of a rig. The hooks may be changed only while nobody writes.
type turns struct {
	takes  int                                 // most bytes that a TryWrite accepts; negative = any number
	before func()                              // before a TryWrite
	behind func(n int, err error) (int, error) // says what it returns
	mu     struct {
		sync.Mutex
		all []writing
	}
}

// take returns what was written since it was called last.
func (l *turns) take() []writing {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.mu.all
	l.mu.all = nil
	return all
}

func (l *turns) note(w writing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.all = append(l.mu.all, w)
}

// turner is a connection that tells who writes on it.
type turner struct {
	*memnet.Conn
	l *turns
}

func (c turner) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.l.note(writing{false, n, len(b)})
	return n, err
}

func (c turner) TryWrite(b []byte) (int, error) {
	if c.l.before != nil {
		c.l.before()
	}
	most := len(b)
	if c.l.takes >= 0 {
		most = min(most, c.l.takes)
	}
	n, err := c.Conn.TryWrite(b[:most])
	c.l.note(writing{true, n, len(b)})
	if c.l.behind != nil {
		return c.l.behind(n, err)
	}
	return n, err
}

// turnBubble is bubble with connections that tell who writes.
func turnBubble(t *testing.T, o setup, f func(t *testing.T, r *rig, l *turns)) {
	t.Helper()
	l := &turns{takes: -1}
	if o.Wrap == nil {
		o.Wrap = func(c net.Conn) net.Conn { return turner{c.(*memnet.Conn), l} }
	}
	bubble(t, o, func(t *testing.T, r *rig) { f(t, r, l) })
}

// chained lets four callers be answered by one read, one of whom, who is to wake the others, does not get a CPU before release is
// called: the reader waits for them, to write then. answered waits for the four.
func (r *rig) chained() (release, answered func()) {
	r.t.Helper()
	release, answered = r.heldUp()
	require.Equal(r.t, 1, r.Chains())
	return release, answered
}

// heldUp is chained when the session may end meanwhile.
func (r *rig) heldUp() (release, answered func()) {
	r.t.Helper()
	require.NoError(r.t, r.Ping(bg))
	r.server.FreezeReplies(true)
	var h *fdengine.HeldUp
	var told []<-chan error
	for i := range 4 {
		c := scripted.Echo("chained" + itoa(i))
		if i == 0 {
			c.OnDecode = func(fdengine.Reply) { h = r.HoldUp() }
		}
		told = append(told, r.later(bg, c))
		synctest.Wait()
	}
	require.Equal(r.t, 4, r.Stats().InFlightCommands)
	r.server.FreezeReplies(false)
	synctest.Wait()
	require.NotNil(r.t, h)
	return h.Release, func() {
		for _, c := range told {
			require.NoError(r.t, <-c)
		}
	}
}

// turn lets the reader write what f submits, and returns who wrote it.
func (r *rig) turn(l *turns, f func()) []writing {
	r.t.Helper()
	release, answered := r.chained()
	l.take()
	f()
	synctest.Wait()
	require.Empty(r.t, l.take(), "it waits for the chain")
	release()
	answered()
	synctest.Wait()
	return l.take()
}

// bytesOf is how many bytes the requests have.
func bytesOf(cs ...*scripted.Cmd) (n int) {
	for _, c := range cs {
		req, _ := c.AppendRequest(nil)
		c.Encodes--
		n += len(req)
	}
	return n
}
