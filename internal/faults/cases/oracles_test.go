package cases_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// judge holds the book against what the servers saw: G1, G2, G3 and G6. All commands must have settled.
func (b *book) judge(t *testing.T, servers ...*scripted.Server) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	executed := map[string]int{}
	for _, s := range servers {
		for token, n := range s.AllExecutions() {
			executed[token] += n
		}
	}
	known := map[string][]*note{}
	for _, n := range b.mu.notes {
		known[n.token] = append(known[n.token], n)
		require.Equal(t, 1, n.told, "G1: %s was told so often", n.token)
		if n.err == nil && n.own != nil {
			require.NoError(t, n.own(), "G2: %s", n.token)
		}
	}
	for token, notes := range known {
		most, sure := 0, 0
		for _, n := range notes {
			switch {
			case n.err != nil && fdengine.FateOf(n.err) == carry.NotSent:
			case n.class == carry.NoRetry:
				most++
			default:
				most += 1 + n.budget
			}
			if n.err == nil {
				sure++
			}
		}
		require.LessOrEqual(t, executed[token], most, "G3: executions of %s: %v", token, notes[0].err)
		if len(servers) > 0 {
			require.GreaterOrEqual(t, executed[token], sure, "G3: %s was answered and never ran", token)
		}
	}
	for _, s := range servers {
		inOrder(t, s, known)
	}
}

// inOrder is G6: on each connection, and over the first arrivals on all of them, what one submitter sent is in the
// order of its submits. Tokens used more than once are left out.
func inOrder(t *testing.T, s *scripted.Server, known map[string][]*note) {
	t.Helper()
	newest, arrived := map[string]int{}, map[string]bool{}
	for i := range s.Conns() {
		last := map[string]int{}
		for _, token := range s.ConnTokens(i) {
			notes := known[token]
			if len(notes) != 1 || notes[0].free {
				continue
			}
			n := notes[0]
			if at, some := last[n.who]; some {
				require.Greater(t, n.at, at, "G6: %s on connection %d came behind a later one of %s", token, i, n.who)
			}
			last[n.who] = n.at
			if arrived[token] {
				continue
			}
			arrived[token] = true
			if at, some := newest[n.who]; some {
				require.Greater(t, n.at, at, "G6: %s arrived first behind a later one of %s", token, n.who)
			}
			newest[n.who] = n.at
		}
	}
}

// tokenOf is the second word of an encoded request, or its only one.
func tokenOf(raw []byte) string {
	var word string
	for i := range 2 {
		at := bytes.IndexByte(raw, '$')
		if at < 0 {
			break
		}
		end := at + bytes.IndexByte(raw[at:], '\n') + 1
		n, err := strconv.Atoi(string(bytes.TrimSpace(raw[at+1 : end])))
		if err != nil {
			panic(err)
		}
		if i == 1 || bytes.HasPrefix(raw, []byte("*1")) {
			word = string(raw[end : end+n])
		}
		raw = raw[end+n:]
	}
	return word
}

// even checks the books of an engine at rest: what was accepted has settled, and nothing is held.
func even(t *testing.T, s fdengine.Stats) {
	t.Helper()
	require.Equal(t, s.Accepted, s.Settled+s.Moved, "%+v", s)
	require.Equal(t, s.Settled, s.Answered+s.NotSent+s.Maybe)
	require.Zero(t, s.QueueCommands+s.QueueBytes+s.InFlightCommands+s.InFlightBytes, "gauges: %+v", s)
}
