package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what is expected to happen; quiet is how long nothing must happen.
const (
	patience = 20 * time.Second
	quiet    = 60 * time.Millisecond
)

// rig is a backend that accepts and does nothing, and a proxy before it.
type rig struct {
	*Proxy
	backend net.Listener
}

func newRig(t *testing.T) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p, err := New(l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return &rig{p, l}
}

// connect makes one connection and returns both of its ends and the link between them.
func (r *rig) connect(t *testing.T) (client, server *net.TCPConn, l *Link) {
	t.Helper()
	had := len(r.Links())
	client = r.dial(t)
	server = accept(t, r.backend)
	require.Eventually(t, func() bool { return len(r.Links()) > had }, patience, time.Millisecond)
	links := r.Links()
	return client, server, links[len(links)-1]
}

func (r *rig) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func accept(t *testing.T, l net.Listener) *net.TCPConn {
	t.Helper()
	require.NoError(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	c, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func receive(t *testing.T, c net.Conn, text string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	b := make([]byte, len(text))
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

// rest is what still arrives, and the error that ends it; nil for a FIN.
func rest(t *testing.T, c net.Conn) (string, error) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	b, err := io.ReadAll(c)
	return string(b), err
}

func silent(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(quiet)))
	n, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%d bytes", n)
}

func ended(t *testing.T, l *Link) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(patience):
		t.Fatal("the link lives on")
	}
}

func TestBytesPassUnchangedBothWaysAndAreCounted(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // more than all buffers on the way
	for i, way := range [][2]*net.TCPConn{{c, s}, {s, c}} {
		fail := make(chan error, 1)
		go func() {
			_, err := way[0].Write(big)
			fail <- err
		}()
		got := make([]byte, len(big))
		require.NoError(t, way[1].SetReadDeadline(time.Now().Add(patience)))
		_, err := io.ReadFull(way[1], got)
		require.NoError(t, err)
		require.NoError(t, <-fail)
		require.True(t, bytes.Equal(big, got), "direction %d", i)
	}
	require.Equal(t, Counts{Accepted: 1, Live: 1, Requests: 1 << 20, Replies: 1 << 20}, r.counted(t, 1<<20, 1<<20))
	requests, replies := l.Forwarded()
	require.EqualValues(t, 1<<20, requests)
	require.EqualValues(t, 1<<20, replies)
}

// counted waits until the writers have counted what the peers have received already.
func (r *rig) counted(t *testing.T, requests, replies int64) Counts {
	t.Helper()
	require.Eventually(t, func() bool {
		c := r.Counts()
		return c.Requests == requests && c.Replies == replies
	}, patience, time.Millisecond)
	return r.Counts()
}

func TestEndsPassAsTheyAre(t *testing.T) {
	t.Run("a FIN of the client behind its bytes, while the server talks on", func(t *testing.T) {
		r := newRig(t)
		c, s, l := r.connect(t)
		send(t, c, "last words")
		require.NoError(t, c.CloseWrite())
		got, err := rest(t, s)
		require.NoError(t, err)
		require.Equal(t, "last words", got)
		send(t, s, "answer")
		receive(t, c, "answer")
		require.NoError(t, s.Close())
		_, err = rest(t, c)
		require.NoError(t, err)
		ended(t, l)
		require.Zero(t, r.Counts().Live)
	})
	t.Run("a RST of the server", func(t *testing.T) {
		r := newRig(t)
		c, s, l := r.connect(t)
		reset(s)
		_, err := rest(t, c)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		ended(t, l)
	})
	t.Run("a RST of the client", func(t *testing.T) {
		r := newRig(t)
		c, s, l := r.connect(t)
		send(t, c, "x")
		receive(t, s, "x")
		reset(c)
		_, err := rest(t, s)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		ended(t, l)
	})
}

func TestABackendThatRefusesResetsTheClient(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.backend.Close())
	c, err := net.Dial("tcp", r.Addr())
	if err == nil { // else the RST came before Dial looked
		defer c.Close()
		_, err = rest(t, c)
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Equal(t, Counts{Accepted: 1, Undialed: 1}, r.Counts())
}

func TestTheBackendIsSwappedForConnectionsToCome(t *testing.T) {
	r := newRig(t)
	c, s, _ := r.connect(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	r.SetBackend(other.Addr().String())
	c2 := r.dial(t)
	s2 := accept(t, other)
	send(t, c2, "new")
	receive(t, s2, "new")
	send(t, c, "old")
	receive(t, s, "old")
}

func TestRefusedConnectionsAreRefusedAndThoseThatLiveGoOn(t *testing.T) {
	r := newRig(t)
	c, s, _ := r.connect(t)
	r.Refuse()
	_, err := net.Dial("tcp", r.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	send(t, c, "still here")
	receive(t, s, "still here")
	require.NoError(t, r.Admit())
	require.NoError(t, r.Admit(), "it is admitted already")
	c, s, _ = r.connect(t)
	send(t, c, "back")
	receive(t, s, "back")
}

func TestOnLinkSeesAConnectionBeforeItsFirstByte(t *testing.T) {
	r := newRig(t)
	r.OnLink(func(l *Link) { l.CutAfter(Requests, 0) })
	c := r.dial(t)
	s := accept(t, r.backend)
	_, _ = io.WriteString(c, "never arrives")
	got, err := rest(t, s)
	require.NoError(t, err)
	require.Empty(t, got)
	r.OnLink(nil)
	c, s, _ = r.connect(t)
	send(t, c, "arrives")
	receive(t, s, "arrives")
}

func TestCloseEndsEverythingAtOnce(t *testing.T) {
	r := newRig(t)
	var clients []*net.TCPConn
	for range 5 {
		c, _, l := r.connect(t)
		clients = append(clients, c)
		l.Freeze(BothWays)
	}
	c, s, l := r.connect(t)
	l.Delay(BothWays, time.Hour)
	send(t, c, "kept")
	send(t, s, "kept")
	r.Close()
	r.Close()
	require.Zero(t, r.Counts().Live)
	for _, c := range clients {
		_, err := rest(t, c)
		require.Error(t, err)
	}
	require.NoError(t, r.Admit())
	_, err := net.Dial("tcp", r.Addr())
	require.True(t, errors.Is(err, syscall.ECONNREFUSED), "%v", err)
}
