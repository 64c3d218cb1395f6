package carry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// again attaches t to a new record and appends it.
func again(l *Log[string], t *Ticket[string], owner string, frames uint16) {
	r := Record[string]{Owner: owner, Frames: frames, Class: Replay, Budget: 3}
	r.Attach(t)
	l.Append(&r, []byte(owner))
}

// deliver is the reader with a reply for the oldest record.
func deliver(t *testing.T, c *Chunk[string]) {
	r := c.Peek()
	require.NotNil(t, r)
	require.True(t, r.Decide())
	r.Owner = ""
	r.Settle()
	c.Take()
}

// A delivered record stays in its block until the chunk ends, and the block until it is recycled; its ticket may have
// been attached again by then. Whoever walks the chain must tell the two apart.
//
// Covers: E-43
func TestARecordWhoseTicketWasAttachedAgainIsNotTakenForTheNewOne(t *testing.T) {
	var l Log[string]
	var ticket Ticket[string]
	var c Chunk[string]
	start := func() Span[string] {
		again(&l, &ticket, "old", 1)
		s, ok := l.Claim(10, 100, false)
		require.True(t, ok)
		l.Begin(&c)
		deliver(t, &c)
		again(&l, &ticket, "new", 1)
		return s
	}
	var got []string
	told := func(e End[string]) { got = append(got, e.Owner+" "+e.Fate.String()) }

	start()
	l.Settle(func(*Record[string]) bool { return true }, WhyAsked, told)
	require.Equal(t, []string{"new not sent"}, got, "settled once, as what it is")
	l.End(&c)
	require.NoError(t, l.Check())

	start()
	walked := 0
	l.Pending(func(r *Record[string], published bool) bool {
		walked++
		require.Equal(t, "new", r.Owner)
		require.False(t, published)
		return true
	})
	require.Equal(t, 1, walked)
	require.Equal(t, Withdrawal{Won: true, Fate: NotSent}, seen(ticket.Withdraw()))
	l.End(&c)
	require.NoError(t, l.Check())

	ticket = Ticket[string]{}
	got = nil
	s := start()
	repeats, left := l.Cut(Death[string]{Last: s, Written: len(s.Bytes)}, told) // the chunk was not even ended
	require.Zero(t, repeats)
	require.False(t, left)
	require.Empty(t, got)
	s, ok := l.Claim(10, 100, false)
	require.True(t, ok)
	require.Equal(t, "new", string(s.Bytes))
	require.NoError(t, l.Check())
}

// Covers: E-43
func TestARecordWithoutReplyThatTheReaderDeliveredIsNotSentByTheWriterOnceMore(t *testing.T) {
	var l Log[string]
	var ticket Ticket[string]
	var c Chunk[string]
	again(&l, &ticket, "quiet", 0)
	again(&l, new(Ticket[string]), "loud", 1)
	s, ok := l.Claim(10, 100, false)
	require.True(t, ok)
	l.Begin(&c)
	deliver(t, &c) // the reply of the next one proves it sent, before the writer came to say so
	again(&l, &ticket, "new", 0)
	l.Quiet(s, len(s.Bytes), func(r *Record[string]) { t.Errorf("%q was settled", r.Owner) })
	deliver(t, &c)
	l.End(&c)
	require.NoError(t, l.Check())
	cmds, _ := l.Held()
	require.Equal(t, 1, cmds)
	require.Equal(t, Withdrawal{Won: true, Fate: NotSent}, seen(ticket.Withdraw()))
}

// A chunk ends where published was when it began, also when records come back there meanwhile: their replies cannot
// be in what was read.
//
// Covers: E-1
func TestAChunkEndsBeforeWhatIsSplicedAfterItBegan(t *testing.T) {
	var l Log[string]
	for _, owner := range []string{"first", "away"} {
		again(&l, new(Ticket[string]), owner, 1)
	}
	s, _ := l.Claim(1, 100, false)
	require.Equal(t, "first", string(s.Bytes))
	ws := l.Evict()
	require.Len(t, ws, 1)
	l.Append(&Record[string]{Owner: "large", Frames: 1}, make([]byte, BigRequest))
	_, ok := l.Claim(1, 100, false)
	require.False(t, ok, "too large while something is in flight; but the cursor has moved on to it")
	require.NotSame(t, l.at, l.cur)

	var c Chunk[string]
	l.Begin(&c)
	require.Equal(t, 1, l.Splice(ws))
	deliver(t, &c)
	require.Nil(t, c.Peek(), "nothing else was published when the chunk began")
	l.End(&c)
	require.NoError(t, l.Check())
	s, _ = l.Claim(1, 100, false)
	require.Equal(t, "away", string(s.Bytes))
}

// A reader that fell in the middle of a chunk, k replies in: those k are settled, and neither told nor sent again.
//
// Covers: E-3
func TestWhatWasTakenBeforeTheReaderFellIsNotReplayed(t *testing.T) {
	for _, ended := range []bool{true, false} {
		var l Log[string]
		for _, owner := range []string{"a", "b", "c", "d"} {
			again(&l, new(Ticket[string]), owner, 1)
		}
		s, _ := l.Claim(10, 100, false)
		var c Chunk[string]
		l.Begin(&c)
		deliver(t, &c)
		deliver(t, &c)
		if ended {
			l.End(&c)
		}
		repeats, _ := l.Cut(Death[string]{Last: s, Written: len(s.Bytes)}, func(e End[string]) { t.Errorf("%s ended again", e.Owner) })
		require.Equal(t, 2, repeats)
		require.NoError(t, l.Check())
		s, _ = l.Claim(10, 100, false)
		require.Equal(t, "cd", string(s.Bytes))
		cmds, _ := l.Held()
		require.Equal(t, 2, cmds)
	}
}
