package carry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A refusal takes what its stream has queued out of the chain. Each of those counts once, also while so little of the
// chain is dead that compacting would not pay.
//
// Covers: E-11
func TestWhatAHeldStreamTakesOutOfTheChainCountsOnce(t *testing.T) {
	var l Log[int]
	var s Stream[int]
	add := func(owner int, s *Stream[int]) {
		l.Append(&Record[int]{Owner: owner, Frames: 1, Class: Replay, Budget: 3, Stream: s}, []byte("0123456789"))
	}
	add(0, &s)
	_, ok := l.Claim(1, 1<<20, false)
	require.True(t, ok)
	for i := range 9 {
		add(1+i, nil)
	}
	add(10, &s)

	var c Chunk[int]
	l.Begin(&c)
	r := c.Peek()
	require.True(t, r.Decide())
	r.Refused(false)
	ok, left := l.Refuse(r, c.Encoded(r), nil, 5, func(End[int]) {})
	require.True(t, ok)
	require.False(t, left)
	c.Take()
	l.End(&c)

	cmds, bytes := l.Held()
	require.Equal(t, 11, cmds)
	require.Equal(t, 110, bytes)
	require.NoError(t, l.Check())
	l.Due(5)
	require.Equal(t, 11, answerAll(&l))
	cmds, bytes = l.Held()
	require.Zero(t, cmds)
	require.Zero(t, bytes)
}
