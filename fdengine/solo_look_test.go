//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package fdengine_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
)

// parrot is a server on a real socket that answers with the word it was asked, and says things unasked.
type parrot struct {
	trickler
	mu struct {
		sync.Mutex
		conn net.Conn
	}
}

func startParrot(t *testing.T) *parrot {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &parrot{trickler: trickler{Listener: l}}
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.mu.conn = c
			p.mu.Unlock()
			p.work.Go(func() {
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				for {
					word, err := r.ReadString('\n')
					if err == nil {
						_, err = c.Write([]byte(word))
					}
					if err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.work.Wait() })
	return p
}

// say writes a word on the last connection.
func (p *parrot) say(t *testing.T, word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.mu.conn.Write([]byte(word + "\n"))
	require.NoError(t, err)
}

// word is a command of its, with the answer.
type word struct{ ask, answer string }

func (w *word) AppendRequest(dst []byte) ([]byte, error) { return append(dst, w.ask+"\n"...), nil }
func (w *word) DecodeReply(r fdengine.Reply) error {
	w.answer = strings.TrimSuffix(string(r.Frame), "\n")
	return nil
}

// Covers: E-1
func TestWhatTheServerSaysWhileNobodyReadsIsNotTheAnswerToTheNextLoneCommand(t *testing.T) {
	p := startParrot(t)
	e, err := fdengine.New(fdengine.Options{Leaser: p, Protocol: func() fdengine.Protocol { return lines{} }})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()); <-e.Done() }()
	n := 0
	next := func() {
		w := &word{ask: fmt.Sprintf("w%d", n)}
		n++
		require.NoError(t, e.Do(bg, w))
		require.Equal(t, w.ask, w.answer)
	}
	for round := range 20 {
		next()
		for !e.Vacant() {
			next()
		}
		p.say(t, "unasked")
		next()
		require.EqualValues(t, round+1, e.Stats().Cuts, "it ends the connection")
	}
}

func TestWithoutLeaveNobodyGoesSolo(t *testing.T) {
	p := startParrot(t)
	e, err := fdengine.New(fdengine.Options{Leaser: p, Protocol: func() fdengine.Protocol { return lines{} }, LoneCaller: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()); <-e.Done() }()
	for range 50 {
		require.NoError(t, e.Do(bg, &word{ask: "w"}))
		require.False(t, e.Vacant())
	}
}
