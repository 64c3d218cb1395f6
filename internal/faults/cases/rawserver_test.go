package cases_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// rawServer is the plainest server there is: it reads one request, writes the whole reply, and only then reads on,
// as real ones do that process a connection serially. It keeps nothing but a count per token.
type rawServer struct {
	l      net.Listener
	answer func(words []string) []byte // the payload of a bulk reply
	wg     sync.WaitGroup
	mu     struct {
		sync.Mutex
		executed map[string]int
	}
}

// startRaw serves on loopback until done, with socket buffers of that many bytes (0: the kernel's choice).
func startRaw(t *testing.T, buffers int, answer func(words []string) []byte) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &rawServer{l: l, answer: answer}
	s.mu.executed = map[string]int{}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { buffersOf(c, buffers); s.serve(c); _ = c.Close() })
		}
	})
	return s
}

func (s *rawServer) addr() string { return s.l.Addr().String() }

func (s *rawServer) serve(c net.Conn) {
	r := bufio.NewReaderSize(c, 4096)
	for {
		words, err := readRequest(r)
		if err != nil {
			return
		}
		if words[0] == "PING" {
			if _, err := io.WriteString(c, "+PONG\r\n"); err != nil {
				return
			}
			continue
		}
		s.mu.Lock()
		s.mu.executed[words[1]]++
		s.mu.Unlock()
		payload := s.answer(words)
		if _, err := fmt.Fprintf(c, "$%d\r\n", len(payload)); err != nil {
			return
		}
		if _, err := c.Write(payload); err != nil {
			return
		}
		if _, err := io.WriteString(c, "\r\n"); err != nil {
			return
		}
	}
}

// buffersOf makes the buffers of a socket that small, or as small as the kernel lets us; 0 leaves them.
func buffersOf(c net.Conn, n int) {
	if tcp, ok := c.(*net.TCPConn); ok && n > 0 {
		_ = tcp.SetReadBuffer(n)
		_ = tcp.SetWriteBuffer(n)
	}
}

func readRequest(r *bufio.Reader) ([]string, error) {
	header := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := header()
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := header()
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		words[i] = string(b[:size])
	}
	return words, nil
}

// done closes everything and lets the oracles judge.
func (s *rawServer) done(t *testing.T, e *fdengine.Engine, b *book, l *scripted.Leaser) {
	t.Helper()
	require.Zero(t, b.open(), "G1")
	_ = e.Close()
	<-e.Done()
	even(t, e.Stats())
	require.NoError(t, l.Check())
	l.Close()
	require.NoError(t, s.l.Close())
	s.wg.Wait() // G4: each connection has ended, and it was not the server that ended it
	b.judge(t)
	b.once(t, s.mu.executed)
	tally.Scenario(1)
}

// once requires that each answered command ran exactly once.
func (b *book) once(t *testing.T, executed map[string]int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.mu.notes {
		require.NoError(t, n.err, "%s", n.token)
		require.Equal(t, 1, executed[n.token], "%s", n.token)
	}
}
