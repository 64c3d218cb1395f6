package fdengine_test

import (
	"bytes"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// looks is what the connections of a rig saw of who works on them: a lone caller, or the engine's own goroutines. The
// hooks run on a lone caller's goroutine and may be changed only while nobody works.
type looks struct {
	onWrite func() // before a lone caller's write
	onRead  func() // before a lone caller's read
	behind  func() // behind a lone caller's write

	writing atomic.Int32
	mu      struct {
		sync.Mutex
		writes, reads int // by lone callers
		most          int32
	}
}

// serves counts the writes and reads that lone callers made.
func (l *looks) serves() (writes, reads int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.writes, l.mu.reads
}

// looker is a connection that looks who works on it.
type looker struct {
	*memnet.Conn
	l *looks
}

func (c looker) Write(b []byte) (int, error) {
	n := c.l.writing.Add(1)
	defer c.l.writing.Add(-1)
	alone := alone()
	c.l.mu.Lock()
	c.l.mu.most = max(c.l.mu.most, n)
	if alone {
		c.l.mu.writes++
	}
	c.l.mu.Unlock()
	if !alone {
		return c.Conn.Write(b)
	}
	if c.l.onWrite != nil {
		c.l.onWrite()
	}
	k, err := c.Conn.Write(b)
	if c.l.behind != nil {
		c.l.behind()
	}
	return k, err
}

func (c looker) Read(b []byte) (int, error) {
	if alone() {
		c.l.mu.Lock()
		c.l.mu.reads++
		c.l.mu.Unlock()
		if c.l.onRead != nil {
			c.l.onRead()
		}
	}
	return c.Conn.Read(b)
}

// alone says whether it is called by a lone caller who serves himself.
func alone() bool {
	buf := make([]byte, 32<<10)
	return bytes.Contains(buf[:runtime.Stack(buf, false)], []byte("goSolo"))
}

// loneBubble is bubble with connections that look, and an engine whose reader stands by after one lone reply, which it
// has had. In the end nobody has written while somebody else did.
func loneBubble(t *testing.T, o setup, f func(t *testing.T, r *rig, l *looks)) {
	t.Helper()
	l := &looks{}
	o.Wrap = func(c net.Conn) net.Conn { return looker{c.(*memnet.Conn), l} }
	bubble(t, o, func(t *testing.T, r *rig) {
		r.SetSoloAfter(1)
		r.lonely()
		f(t, r, l)
		l.mu.Lock()
		defer l.mu.Unlock()
		require.LessOrEqual(t, l.mu.most, int32(1), "two wrote at a time")
	})
}

// lonely lets the reader stand by.
func (r *rig) lonely() {
	r.t.Helper()
	require.NoError(r.t, r.Do(bg, scripted.Echo("lonely")))
	synctest.Wait()
}

// firstTime returns f for one run.
func firstTime(f func()) func() {
	var o sync.Once
	return func() { o.Do(f) }
}

// ways of asking for one command; told gets its outcome.
var ways = map[string]func(t *testing.T, r *rig, c fdengine.Command, told chan<- error){
	"Do": func(_ *testing.T, r *rig, c fdengine.Command, told chan<- error) { told <- r.Do(bg, c) },
	"Submit": func(t *testing.T, r *rig, c fdengine.Command, told chan<- error) {
		require.NoError(t, r.Submit(bg, c, tells(told)))
	},
	"TrySubmit": func(t *testing.T, r *rig, c fdengine.Command, told chan<- error) {
		require.NoError(t, r.TrySubmit(c, tells(told)))
	},
	"DoBatch": func(_ *testing.T, r *rig, c fdengine.Command, told chan<- error) {
		told <- r.DoBatch(bg, []fdengine.Command{c}, nil)
	},
}

// tells is a Completion that passes the outcome on.
type tells chan<- error

func (c tells) Complete(_ fdengine.Command, err error) { c <- err }
