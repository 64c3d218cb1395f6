package carry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// healthy is a log with something of everything: answered, in flight, without reply, queued, dead, and a second block.
func healthy(t *testing.T) (*Log[string], *Stream[string]) {
	l, s := new(Log[string]), new(Stream[string])
	tickets := make([]Ticket[string], 6)
	for i, owner := range []string{"a", "b", "quiet", "c", "d", "e"} {
		r := Record[string]{Owner: owner, Frames: 1}
		if owner == "quiet" {
			r.Frames = 0
		}
		if owner == "d" {
			r.Stream = s
		}
		r.Attach(&tickets[i])
		l.Append(&r, []byte(owner))
	}
	l.Append(&Record[string]{Owner: "large", Frames: 1}, make([]byte, BigRequest))
	_, ok := l.Claim(2, 100, false)
	require.True(t, ok)
	var c Chunk[string]
	l.Begin(&c)
	deliver(t, &c)
	l.End(&c)
	require.True(t, tickets[5].Withdraw().Won)
	require.NoError(t, l.Check())
	return l, s
}

// Check is what says after a fault of our own whether the engine may go on. Each thing it looks at is broken once.
//
//
func TestCheckFindsEachInvariantThatIsBroken(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(l *Log[string], s *Stream[string])
		want  string
	}{
		"chain":      {func(l *Log[string], _ *Stream[string]) { l.tail.prev = nil }, "chain broken"},
		"too many":   {func(l *Log[string], _ *Stream[string]) { l.head.n = len(l.head.recs) + 1 }, "block holds "},
		"back":       {func(l *Log[string], _ *Stream[string]) { l.head.back = l.head.n + 1 }, "did not come back"},
		"passed":     {func(l *Log[string], _ *Stream[string]) { l.head.passed = true }, "block before the cursor is false, marked true"},
		"acked":      {func(l *Log[string], _ *Stream[string]) { l.ack = l.pub + 1 }, "acked passed published"},
		"offset":     {func(l *Log[string], _ *Stream[string]) { l.head.recs[1].off++ }, "record 2 starts at 2, want 1"},
		"sequence":   {func(l *Log[string], _ *Stream[string]) { l.head.recs[1].seq = 1 }, "record 1 follows 1 in one block"},
		"orphan":     {func(_ *Log[string], s *Stream[string]) { s.fail(1) }, "record 5 waits behind a break of its stream at 1"},
		"held":       {func(_ *Log[string], s *Stream[string]) { s.held.Store(true) }, "record 5 waits in the chain while its stream is held"},
		"ticket":     {func(l *Log[string], _ *Stream[string]) { l.head.recs[3].ticket.blk = nil }, "the ticket of record 4 points elsewhere"},
		"bytes":      {func(l *Log[string], _ *Stream[string]) { l.head.buf = append(l.head.buf, 'x') }, "bytes has records for"},
		"dead":       {func(l *Log[string], _ *Stream[string]) { l.head.dead++ }, "block counts"},
		"quiet":      {func(l *Log[string], _ *Stream[string]) { l.head.quiet = 0 }, "block counts"},
		"blocks":     {func(l *Log[string], _ *Stream[string]) { l.shelves.of[2].used++ }, "counts 1 blocks of width 2 in use, has 0"},
		"tail":       {func(l *Log[string], _ *Stream[string]) { l.tail = l.head }, "lies outside the chain"},
		"cursor":     {func(l *Log[string], _ *Stream[string]) { l.cur = new(block[string]); l.head.passed = true }, "block counts 1 dead"},
		"not held":   {func(l *Log[string], s *Stream[string]) { l.holding = append(l.holding, s) }, "in the list of held ones is not held"},
		"commands":   {func(l *Log[string], _ *Stream[string]) { l.cmds++ }, "counts"},
		"byte count": {func(l *Log[string], _ *Stream[string]) { l.bytes-- }, "counts"},
		"in flight":  {func(l *Log[string], _ *Stream[string]) { l.inFlight++ }, "counts"},
		"flying":     {func(l *Log[string], _ *Stream[string]) { l.flying++ }, "counts"},
		"waiting":    {func(l *Log[string], _ *Stream[string]) { l.waiting = append(l.waiting, Away[string]{}) }, "counts"},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := healthy(t)
			c.spoil(l, s)
			require.ErrorContains(t, l.Check(), c.want)
		})
	}
}

// A ticket that points at a block without its record would withdraw a stranger: that is our bug, and said loudly.
func TestATicketWithoutItsRecordIsAnInvariant(t *testing.T) {
	l, _ := healthy(t)
	r := &l.head.recs[3]
	ticket := r.ticket
	ticket.seq = 1000
	require.PanicsWithValue(t, "carry: invariant: a pending ticket points at a block without its record", func() {
		defer l.Unlock() // taken by Withdraw
		ticket.Withdraw()
	})
}
