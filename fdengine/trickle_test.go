//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package fdengine_test

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
)

// trickler is a server on a real socket that writes each reply by itself, one every 20 us, and stops when it has written
// as many as it may.
type trickler struct {
	net.Listener
	may     atomic.Int64
	sent    atomic.Int64
	stopped chan struct{}
	once    sync.Once
	work    sync.WaitGroup
}

func startTrickler(t *testing.T) *trickler {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &trickler{Listener: l, stopped: make(chan struct{})}
	s.may.Store(1 << 40)
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.work.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); s.work.Wait() })
	return s
}

func (s *trickler) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		if _, err := r.ReadString('\n'); err != nil {
			return
		}
		for at := time.Now(); time.Since(at) < 20*time.Microsecond || s.sent.Load() >= s.may.Load(); {
			runtime.Gosched()
		}
		last := s.sent.Add(1) >= s.may.Load()
		if _, err := c.Write([]byte("answer\n")); err != nil {
			return
		}
		if last {
			s.once.Do(func() { close(s.stopped) })
		}
	}
}

// Lease, Put and Remove make it a Leaser of connections to itself.
func (s *trickler) Lease(ctx context.Context) (*pool.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr().String())
	if err != nil {
		return nil, err
	}
	return pool.NewConn(c, c, time.Now()), nil
}
func (s *trickler) Put(c *pool.Conn)             { _ = c.Close() }
func (s *trickler) Remove(c *pool.Conn, _ error) { _ = c.Close() }

// lines is a protocol of lines.
type lines struct{}

func (lines) Next(b []byte) (n, need int, kind fdengine.Kind, err error) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1, 0, fdengine.KindReply, nil
	}
	return 0, len(b) + 1, fdengine.KindReply, nil
}
func (lines) Verdict([]byte, bool) fdengine.Verdict { return fdengine.Verdict{} }

// question is a command of it.
type question struct{}

func (question) AppendRequest(dst []byte) ([]byte, error) { return append(dst, "question\n"...), nil }
func (question) DecodeReply(fdengine.Reply) error         { return nil }

// ask lets 64 callers ask, until more says that it is enough; told is called for each answer.
func ask(t *testing.T, e *fdengine.Engine, more func(begun int64) bool, told func()) (wait func()) {
	var callers sync.WaitGroup
	var begun atomic.Int64
	for range 64 {
		callers.Go(func() {
			for more(begun.Add(1)) {
				if err := e.Do(bg, question{}); err != nil {
					t.Errorf("Do: %v", err)
					return
				}
				told()
			}
		})
	}
	return callers.Wait
}

func withTrickler(t *testing.T) (*trickler, *fdengine.Engine) {
	t.Helper()
	s := startTrickler(t)
	e, err := fdengine.New(fdengine.Options{Leaser: s, Protocol: func() fdengine.Protocol { return lines{} }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()); <-e.Done() })
	return s, e
}

func TestRepliesThatTrickleAreReadSeveralAtATime(t *testing.T) {
	s, e := withTrickler(t)
	var told, most atomic.Int64
	ask(t, e, func(begun int64) bool { return begun <= 5000 }, func() {
		if g := int64(e.Gathers()); g > most.Load() {
			most.Store(g)
		}
		told.Add(1)
	})()
	require.EqualValues(t, 5000, told.Load())
	require.EqualValues(t, 5000, s.sent.Load())
	require.GreaterOrEqual(t, most.Load(), int64(4*len("answer\n")), "bytes waited for")
	require.LessOrEqual(t, most.Load(), int64(2*16*len("answer\n")), "a quarter of 64 replies, or twice as many while that changes")
	require.NoError(t, e.Do(bg, question{}), "and a lone reply is not waited for")
	require.LessOrEqual(t, e.Gathers(), 1)
}

func TestNoReplyWaitsForOneThatDoesNotCome(t *testing.T) {
	s, e := withTrickler(t)
	var told atomic.Int64
	var once sync.Once
	var over atomic.Bool
	wait := ask(t, e, func(int64) bool { return !over.Load() }, func() {
		if told.Add(1) > 500 && e.Gathers() >= 4*len("answer\n") {
			once.Do(func() { s.may.Store(s.sent.Load() + 2) }) // fewer than the reader waits for
		}
	})
	<-s.stopped
	stops := s.sent.Load()
	at := time.Now()
	for told.Load() < stops && time.Since(at) < 2*time.Second {
		runtime.Gosched()
	}
	all := told.Load() == stops
	over.Store(true)
	s.may.Store(1 << 40)
	wait()
	require.True(t, all, "what was answered has not been told")
	require.Equal(t, s.sent.Load(), told.Load())
	require.Zero(t, e.Stats().Cuts)
}
