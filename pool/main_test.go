package pool_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBoom = errors.New("boom")

// peer is a server in memory: its dial is a DialFunc, and it counts what is open.
type peer struct {
	mu struct {
		sync.Mutex
		fail   error      // what dial returns, when set
		remote []net.Conn // the server's ends, in order of the dials
		dials  int
		open   int // connections the pool has not closed
		most   int // the highest open ever
	}
}

func (s *peer) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.dials++
	if s.mu.fail != nil {
		return nil, s.mu.fail
	}
	near, far := net.Pipe()
	s.mu.remote = append(s.mu.remote, far)
	s.mu.open++
	s.mu.most = max(s.mu.most, s.mu.open)
	return &counted{Conn: near, peer: s}, nil
}

func (s *peer) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.fail = err
}

func (s *peer) dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.dials
}

func (s *peer) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.open
}

func (s *peer) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.most
}

// counted tells its peer of the first Close.
type counted struct {
	net.Conn
	peer *peer
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.peer.mu.Lock()
		defer c.peer.mu.Unlock()
		c.peer.mu.open--
	})
	return c.Conn.Close()
}

// newPool makes a pool that is closed at the end of the test.
func newPool(t testing.TB, o pool.Options) *pool.Pool {
	t.Helper()
	if o.Addr == "" {
		o.Addr = "peer.test:1"
	}
	p, err := pool.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func lease(t testing.TB, p *pool.Pool) *pool.Conn {
	t.Helper()
	c, err := p.Lease(context.Background())
	require.NoError(t, err)
	require.NotNil(t, c)
	return c
}

// numbered is a Handshake that numbers the sessions 1, 2, ... and records the fences it was given.
type numbered struct {
	mu struct {
		sync.Mutex
		last   int
		fences [][]any
		fail   error
	}
}

func (n *numbered) handshake(_ context.Context, d *pool.Dial) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.fences = append(n.mu.fences, d.Fence)
	if n.mu.fail != nil {
		return n.mu.fail
	}
	n.mu.last++
	d.Conn.Session = n.mu.last
	return nil
}

func (n *numbered) failWith(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.fail = err
}

// lastFence returns what the latest handshake was given.
func (n *numbered) lastFence() []any {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.fences[len(n.mu.fences)-1]
}

// leased is what a Lease on another goroutine returned.
type leased struct {
	c   *pool.Conn
	err error
}

func leaseAsync(ctx context.Context, p *pool.Pool) <-chan leased {
	ch := make(chan leased, 1)
	go func() {
		c, err := p.Lease(ctx)
		ch <- leased{c, err}
	}()
	return ch
}
