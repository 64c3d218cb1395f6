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
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// tubeServer is a beanstalkd that answers what a session is set up with, and leaves all else to a script.
type tubeServer struct {
	net    *memnet.Network
	script func(c *tubeConn, line string)
	wg     sync.WaitGroup
	mu     struct {
		sync.Mutex
		conns []*tubeConn
		log   []string // all lines, behind the set-up
		jobs  []string // bodies of puts
	}
}

// tubeConn is one connection of it.
type tubeConn struct {
	net.Conn
	s     *tubeServer
	index int
	body  string // of the put at hand
	ready bool   // the set-up is over
}

// say writes raw bytes. A client that is gone does not hear it.
func (c *tubeConn) say(raw string) { _, _ = io.WriteString(c.Conn, raw) }

// tubeBubble runs f in a bubble with a server whose script deals with each line behind the set-up of a session.
func tubeBubble(t *testing.T, script func(c *tubeConn, line string), f func(t *testing.T, s *tubeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &tubeServer{net: new(memnet.Network), script: script}
		l, err := s.net.Listen("server:1")
		require.NoError(t, err)
		s.wg.Go(func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				s.mu.Lock()
				c := &tubeConn{Conn: nc, s: s, index: len(s.mu.conns)}
				s.mu.conns = append(s.mu.conns, c)
				s.mu.Unlock()
				s.wg.Go(func() { c.talk(); _ = c.Close() })
			}
		})
		defer s.wg.Wait()
		defer func() {
			_ = l.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, c := range s.mu.conns {
				_ = c.Close()
			}
		}()
		f(t, s)
		tally.Scenario(1)
	})
}

func (c *tubeConn) talk() {
	r := bufio.NewReader(c.Conn)
	tube := "default"
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\r\n")
		words := strings.Fields(line)
		if len(words) == 0 {
			return
		}
		if words[0] == "put" {
			size, _ := strconv.Atoi(words[len(words)-1])
			body := make([]byte, size+2)
			if _, err := io.ReadFull(r, body); err != nil {
				return
			}
			c.body = string(body[:size])
		}
		switch words[0] {
		case "use":
			tube = words[1]
			c.say("USING " + tube + "\r\n")
			continue
		case "watch", "ignore":
			c.say("WATCHING 1\r\n")
			continue
		case "list-tube-used":
			c.ready = true
			c.say("USING " + tube + "\r\n")
			continue
		}
		c.s.mu.Lock()
		c.s.mu.log = append(c.s.mu.log, line)
		if words[0] == "put" {
			c.s.mu.jobs = append(c.s.mu.jobs, c.body)
		}
		c.s.mu.Unlock()
		c.s.script(c, line)
	}
}

// lines are those that begin with the word, on all connections, behind the set-up.
func (s *tubeServer) lines(word string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.mu.log {
		if strings.HasPrefix(l, word) {
			out = append(out, l)
		}
	}
	return out
}

func (s *tubeServer) conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.conns)
}

func (s *tubeServer) options() beanstalkd.Options {
	return beanstalkd.Options{Addr: "server:1", DialFunc: s.net.Dial}
}

// client makes a client whose end the test checks: books even, no socket open.
func (s *tubeServer) client(t *testing.T, change func(o *beanstalkd.Options)) *beanstalkd.Client {
	t.Helper()
	o := s.options()
	if change != nil {
		change(&o)
	}
	c, err := beanstalkd.New(o)
	require.NoError(t, err)
	return c
}

// done closes a client or consumer and checks G4 and its books.
func (s *tubeServer) done(t *testing.T, c interface {
	Close() error
	Done() <-chan struct{}
	Usage() beanstalkd.Usage
}) {
	t.Helper()
	require.NoError(t, c.Close())
	<-c.Done()
	even(t, c.Usage().Engine)
	require.Zero(t, c.Usage().Pool.Open, "G4")
	require.Zero(t, s.net.Open(), "G4")
}

// dict is the reply to a statistics command.
func dict(name string, value any) string {
	body := fmt.Sprintf("---\n%s: %v\n", name, value)
	return fmt.Sprintf("OK %d\r\n%s\r\n", len(body), body)
}
