package beanstalkd

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
)

// witness asks a real server one thing at a time, by no code of this package or of proto/beanstalk.
type witness struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func newWitness(t *testing.T, addr string) *witness {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	t.Cleanup(func() { _ = c.Close() })
	return &witness{t, c, bufio.NewReader(c)}
}

// say sends a request without its line end.
func (w *witness) say(format string, args ...any) {
	w.t.Helper()
	_, err := fmt.Fprintf(w.c, format+"\r\n", args...)
	require.NoError(w.t, err)
}

// hear reads one reply as it came.
func (w *witness) hear() string {
	w.t.Helper()
	line, err := w.r.ReadString('\n')
	require.NoError(w.t, err)
	words := strings.Fields(line)
	if words[0] == "OK" || words[0] == "RESERVED" || words[0] == "FOUND" {
		n, err := strconv.Atoi(words[len(words)-1])
		require.NoError(w.t, err)
		body := make([]byte, n+2)
		_, err = io.ReadFull(w.r, body)
		require.NoError(w.t, err)
		line += string(body)
	}
	return line
}

// ask is say and hear, without the last line end.
func (w *witness) ask(format string, args ...any) string {
	w.t.Helper()
	w.say(format, args...)
	return strings.TrimSuffix(w.hear(), "\r\n")
}

// stat is one number of statistics; request is "stats" or "stats-tube x".
func (w *witness) stat(request, name string) int {
	w.t.Helper()
	for line := range strings.Lines(w.ask("%s", request)) {
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(v))
			require.NoError(w.t, err)
			return n
		}
	}
	w.t.Fatalf("%s has no %s", request, name)
	return 0
}

// drain reserves and deletes everything that is ready in a tube and counts the bodies.
func (w *witness) drain(tube string) map[string]int {
	w.t.Helper()
	require.Contains(w.t, w.ask("watch %s", tube), "WATCHING")
	if tube != "default" {
		require.Equal(w.t, "WATCHING 1", w.ask("ignore default"))
	}
	out := map[string]int{}
	for {
		reply := w.ask("reserve-with-timeout 0")
		if reply == "TIMED_OUT" {
			return out
		}
		head, body, ok := strings.Cut(reply, "\r\n")
		require.True(w.t, ok, reply)
		out[body]++
		require.Equal(w.t, "DELETED", w.ask("delete %s", strings.Fields(head)[1]))
	}
}

// ends is an Observer that passes on the ends of sessions.
type ends chan fdengine.Event

func (e ends) Observe(ev fdengine.Event) {
	if ev.Kind == fdengine.EventSessionEnd {
		e <- ev
	}
}

// realClient makes a Client of a real server that ends with the test.
func realClient(t *testing.T, addr string, change func(o *Options)) *Client {
	t.Helper()
	o := Options{Addr: addr}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { end(t, c) })
	return c
}

// realConsumer makes a Consumer of a real server that ends with the test.
func realConsumer(t *testing.T, addr string, change func(o *Options), tubes ...string) *Consumer {
	t.Helper()
	o := Options{Addr: addr}
	if change != nil {
		change(&o)
	}
	c, err := NewConsumer(o, tubes...)
	require.NoError(t, err)
	t.Cleanup(func() { end(t, c) })
	return c
}
