package beanstalkd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is what the fake server received: one line, and the body behind it if it is a put.
type request struct {
	conn int // counts from 0
	line string
	body string
	tube string // in use when it came
}

// What a script may return instead of replies.
const (
	normal = ""      // answer as a server does
	mute   = "\x00m" // do it, and say nothing
	drop   = "\x00d" // close the connection without doing it
	doDrop = "\x00D" // do it, and close without answering
)

// fake is a small beanstalkd that does what a script says, and the witness of what it received and stored. It
// stores jobs; it reserves none, unless the script says so.
type fake struct {
	net    *memnet.Network
	script func(r request) string
	wg     sync.WaitGroup
	mu     struct {
		sync.Mutex
		conns int
		log   []request
		jobs  []request // stored
	}
}

// bubble runs f in a synctest bubble with a fake server on a memory network.
func bubble(t *testing.T, script func(r request) string, f func(t *testing.T, s *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &fake{net: new(memnet.Network), script: script}
		l, err := s.net.Listen("server:1")
		require.NoError(t, err)
		s.serve(l)
		defer s.wg.Wait()
		defer l.Close()
		f(t, s)
	})
}

// options dial the server.
func (s *fake) options() Options { return Options{Addr: "server:1", DialFunc: s.net.Dial} }

func (s *fake) serve(l net.Listener) {
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			n := s.mu.conns
			s.mu.conns++
			s.mu.Unlock()
			s.wg.Go(func() {
				s.talk(c, n)
				_ = c.Close()
			})
		}
	})
}

func (s *fake) talk(c net.Conn, n int) {
	r := bufio.NewReader(c)
	tube, watched := "default", []string{"default"}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		req := request{conn: n, line: strings.TrimSuffix(line, "\r\n"), tube: tube}
		words := strings.Fields(req.line)
		if words[0] == "put" {
			size, _ := strconv.Atoi(words[len(words)-1])
			body := make([]byte, size+2)
			if _, err := io.ReadFull(r, body); err != nil {
				return
			}
			req.body = string(body[:size])
		}
		s.mu.Lock()
		s.mu.log = append(s.mu.log, req)
		s.mu.Unlock()
		reply := normal
		if s.script != nil {
			reply = s.script(req)
		}
		switch reply {
		case drop:
			return
		case normal, mute, doDrop:
		default:
			if _, err := io.WriteString(c, reply); err != nil {
				return
			}
			continue
		}
		answer := ""
		switch words[0] {
		case "use":
			tube = words[1]
			answer = "USING " + tube
		case "list-tube-used":
			answer = "USING " + tube
		case "watch":
			if !slices.Contains(watched, words[1]) {
				watched = append(watched, words[1])
			}
			answer = fmt.Sprintf("WATCHING %d", len(watched))
		case "ignore":
			watched = slices.DeleteFunc(watched, func(w string) bool { return w == words[1] })
			answer = fmt.Sprintf("WATCHING %d", len(watched))
		case "put":
			s.mu.Lock()
			s.mu.jobs = append(s.mu.jobs, req)
			answer = fmt.Sprintf("INSERTED %d", len(s.mu.jobs))
			s.mu.Unlock()
		case "delete":
			answer = "DELETED"
		case "touch":
			answer = "TOUCHED"
		case "kick":
			answer = "KICKED 0"
		default:
			answer = "NOT_FOUND"
		}
		if reply == doDrop {
			return
		}
		if reply == normal {
			if _, err := io.WriteString(c, answer+"\r\n"); err != nil {
				return
			}
		}
	}
}

// lines are what connection n sent, behind the handshake.
func (s *fake) lines(n int) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.mu.log {
		if r.conn == n {
			out = append(out, r.line)
		}
	}
	if i := slices.Index(out, "list-tube-used"); i >= 0 {
		out = out[i+1:]
	}
	return out
}

// stored counts the jobs with that body.
func (s *fake) stored(body string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.mu.jobs {
		if j.body == body {
			n++
		}
	}
	return n
}

func (s *fake) conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.conns
}

// client makes a Client that ends with f.
func (s *fake) client(t *testing.T, change func(o *Options)) *Client {
	o := s.options()
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// end closes what was made and waits for it.
func end(t *testing.T, c interface {
	Close() error
	Done() <-chan struct{}
}) {
	require.NoError(t, c.Close())
	<-c.Done()
}

// even checks the books of a client after quiescence.
func even(t *testing.T, u Usage) {
	e := u.Engine
	require.Equal(t, e.Accepted, e.Settled)
	require.Equal(t, e.Settled, e.Answered+e.NotSent+e.Maybe)
	require.Zero(t, e.QueueCommands+e.QueueBytes+e.InFlightCommands+e.InFlightBytes)
}

var bg = context.Background()
