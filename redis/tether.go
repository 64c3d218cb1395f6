package redis

import (
	"context"
	"errors"
	"sync"

	"github.com/fdengine/fullduplex/pool"
)

// ErrSessionLost says that the connection of a Lent or a WatchTx is gone, and with it what was set on it. Nothing
// is sent on another connection in its place.
var ErrSessionLost = errors.New("redis: the lent connection was lost")

// tether is the Leaser of one lent engine. It knows which connection the engine has, and while it is pinned the
// engine gets no other one. The methods of Leaser run on the engine's goroutine.
type tether struct {
	pool *pool.Pool
	mu   struct {
		sync.Mutex
		conn   *pool.Conn // on loan to the engine; nil: none
		pinned bool
	}
}

// Lease implements pool.Leaser. It fails for good while pinned.
func (t *tether) Lease(ctx context.Context) (*pool.Conn, error) {
	t.mu.Lock()
	pinned := t.mu.pinned
	t.mu.Unlock()
	if pinned {
		return nil, pool.Permanent(ErrSessionLost)
	}
	c, err := t.pool.Lease(ctx)
	if err == nil {
		t.mu.Lock()
		t.mu.conn = c
		t.mu.Unlock()
	}
	return c, err
}

// Put implements pool.Leaser. A pinned connection has a state that nobody else may find.
func (t *tether) Put(c *pool.Conn) {
	if t.end() {
		t.pool.Remove(c, ErrSessionLost)
		return
	}
	t.pool.Put(c)
}

// Remove implements pool.Leaser.
func (t *tether) Remove(c *pool.Conn, why error) {
	t.end()
	t.pool.Remove(c, why)
}

func (t *tether) end() (pinned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.conn = nil
	return t.mu.pinned
}

// pin keeps the engine on the connection that it has; false when it has none. It is called when nothing is
// submitted, so that the engine leases nothing meanwhile.
func (t *tether) pin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.pinned = t.mu.conn != nil
	return t.mu.pinned
}

func (t *tether) unpin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.pinned = false
}

// session is the id of the connection that the engine has; 0 when it has none or the server did not tell.
func (t *tether) session() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.conn != nil {
		if s, ok := t.mu.conn.Session.(*Session); ok {
			return s.ID
		}
	}
	return 0
}

// has says whether the engine has a connection.
func (t *tether) has() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.conn != nil
}
