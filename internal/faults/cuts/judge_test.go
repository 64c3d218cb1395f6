package cuts

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// judge compares what callers were told with what the server knows. It holds for any number of cuts.
func judge(t *testing.T, s *story) {
	runs := map[string]int{} // by name of the call, all connections
	for _, c := range s.conns {
		for _, name := range s.whole(t, c) {
			runs[name]++
		}
	}
	broken := false
	for _, c := range s.all() {
		n := runs[c.name]
		require.Equal(t, 1, c.settled(), "%v: %s settled", s.plan, c.name)
		switch {
		case c.replay && c.role != leaves:
			require.LessOrEqual(t, n, budget+1, "%v: %s", s.plan, c.name)
		default:
			require.LessOrEqual(t, n, 1, "%v: %s", s.plan, c.name)
		}
		if c.err == nil {
			require.NoError(t, c.own(), "%v: %s", s.plan, c.name)
			require.Positive(t, n, "%v: %s was answered", s.plan, c.name)
			continue
		}
		fate := fdengine.FateOf(c.err)
		require.NotEqual(t, carry.Answered, fate, "%v: %s: %v", s.plan, c.name, c.err)
		require.Equal(t, fate == carry.NotSent, errors.Is(c.err, fdengine.ErrNotSent), "%v: %s: %v", s.plan, c.name, c.err)
		require.Equal(t, fate == carry.MaybeExecuted, errors.Is(c.err, fdengine.ErrMaybeExecuted), "%v: %s: %v", s.plan, c.name, c.err)
		if fate == carry.NotSent {
			require.Zero(t, n, "%v: %s: %v", s.plan, c.name, c.err)
		}
		broken = broken || c.role == streams
	}
	require.NoError(t, s.after.err, "%v: another caller's command afterwards", s.plan)
	if broken {
		require.ErrorIs(t, s.next.err, fdengine.ErrStreamBroken, "%v", s.plan)
		require.Zero(t, runs[s.next.name], "%v: sent behind a gap of its Stream", s.plan)
	} else {
		require.NoError(t, s.next.err, "%v", s.plan)
	}
	require.Equal(t, s.stats.Accepted, s.stats.Settled, "%v", s.plan)
	require.Equal(t, s.stats.Settled, s.stats.Answered+s.stats.NotSent+s.stats.Maybe, "%v", s.plan)
	require.Zero(t, s.stats.QueueCommands+s.stats.QueueBytes+s.stats.InFlightCommands+s.stats.InFlightBytes, "%v", s.plan)
	require.Zero(t, s.stats.Panics, "%v", s.plan)
	require.Zero(t, s.open, "%v: connections left open", s.plan)
}

// whole takes apart what a connection received: a handshake, then whole records in the order of their submits, then
// perhaps the start of one. It returns the names of the whole ones, and holds the server to them: what it carried
// out is exactly those whose last byte reached it.
func (s *story) whole(t *testing.T, c *served) (names []string) {
	if c.hello < 0 {
		require.Empty(t, c.ran, "%v: before the handshake was over", s.plan)
		return nil
	}
	var tokens []string
	left := s.all()
	for rest := c.got[c.hello:]; len(rest) > 0; {
		i := slices.IndexFunc(left, func(c *call) bool {
			n := min(len(rest), len(c.enc))
			return bytes.Equal(rest[:n], c.enc[:n])
		})
		require.GreaterOrEqual(t, i, 0, "%v: connection %d received %q, which is no record that may come here", s.plan, c.index, rest)
		r := left[i]
		if left = left[i+1:]; len(rest) < len(r.enc) {
			break
		}
		rest = rest[len(r.enc):]
		names, tokens = append(names, r.name), append(tokens, r.tokens...)
	}
	require.Equal(t, tokens, c.ran, "%v: connection %d", s.plan, c.index)
	return names
}

// judgeExactly compares a story of one cut with the one outcome that it can have, command by command.
func judgeExactly(t *testing.T, s *story, z sizes) {
	judge(t, s)
	require.Greater(t, len(s.conns), 1, "%v: the cut ended no connection", s.plan)
	reached := s.whole(t, s.conns[0])
	end, answered := 0, z.helloBack
	if s.side == requests && !s.how.Drop && !s.vague {
		require.Equal(t, s.at, len(s.conns[0].got)-s.conns[0].hello, "%v: what was accepted was not received", s.plan)
	}
	for i, c := range s.five {
		end += len(c.enc)
		answered += z.replies[i]
		var left, done bool
		switch s.side {
		case setup:
		case requests:
			left = s.flowing && (end <= s.at || s.vague && s.at < z.requests)
		case responses:
			left, done = s.at > z.helloBack, int64(answered) <= s.taken
		}
		runs := 0
		if slices.Contains(reached, c.name) {
			runs = 1
		}
		if left && !s.how.Drop && !s.vague {
			require.Equal(t, 1, runs, "%v: %s", s.plan, c.name)
		}
		for _, later := range s.conns[1:] {
			if slices.Contains(s.whole(t, later), c.name) {
				runs++
			}
		}
		switch {
		case c.role == leaves:
			require.ErrorIs(t, c.err, context.Canceled, "%v", s.plan)
			if s.flowing && (s.side == requests || s.side == responses && s.at > z.helloBack) {
				require.ErrorIs(t, c.err, fdengine.ErrMaybeExecuted, "%v: it was on the wire", s.plan)
			}
			require.False(t, s.flowing && onLater(t, s, c.name), "%v: a ghost was sent again", s.plan)
		case done || !left:
			require.NoError(t, c.err, "%v: %s", s.plan, c.name)
			require.Equal(t, 1, runs, "%v: %s", s.plan, c.name)
		case c.replay:
			require.NoError(t, c.err, "%v: %s", s.plan, c.name)
			require.True(t, onLater(t, s, c.name), "%v: %s was sent again", s.plan, c.name)
		default:
			require.ErrorIs(t, c.err, fdengine.ErrMaybeExecuted, "%v: %s", s.plan, c.name)
			require.False(t, onLater(t, s, c.name), "%v: %s was sent again", s.plan, c.name)
		}
	}
}

func onLater(t *testing.T, s *story, name string) bool {
	return slices.ContainsFunc(s.conns[1:], func(c *served) bool { return slices.Contains(s.whole(t, c), name) })
}
