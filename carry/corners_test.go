package carry

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// stage is a log with records of one stream under tickets, by name.
type stage struct {
	t       *testing.T
	l       Log[string]
	s       Stream[string]
	tickets map[string]*Ticket[string]
	told    []string
	span    Span[string]
	chunk   Chunk[string]
}

func newStage(t *testing.T, owners ...string) *stage {
	st := &stage{t: t, tickets: map[string]*Ticket[string]{}}
	for _, o := range owners {
		st.append(o)
	}
	return st
}

func (st *stage) append(owner string) {
	r := Record[string]{Owner: owner, Frames: 1, Class: Replay, Budget: 3, Stream: &st.s}
	st.tickets[owner] = new(Ticket[string])
	r.Attach(st.tickets[owner])
	st.l.Append(&r, []byte(owner))
}

func (st *stage) tell(e End[string]) { st.told = append(st.told, e.Owner+" "+whyNames[e.Why]) }

func (st *stage) claim() string {
	span, ok := st.l.Claim(100, 1<<20, false)
	require.True(st.t, ok)
	st.span = span
	return string(slices.Concat(span.Parts(nil, 0)...))
}

// lose cuts the connection behind a claim that left as a whole.
func (st *stage) lose() {
	st.l.Cut(Death[string]{Last: st.span, Written: st.span.Size}, st.tell)
	st.span = Span[string]{}
}

// refuse is the reader with a refusal for the oldest record.
func (st *stage) refuse(due int64) (ok, left bool) {
	st.l.Begin(&st.chunk)
	r := st.chunk.Peek()
	require.True(st.t, r.Decide())
	r.Refused(false)
	ok, left = st.l.Refuse(r, st.chunk.Encoded(r), []byte("-no"), due, st.tell)
	st.chunk.Take()
	st.l.End(&st.chunk)
	return ok, left
}

func none(*Record[string]) bool { return false }

// The caller of a refused command left while its stream waited, and that command may have run before: it leaves a gap.
// The stream's time came before anybody had told those behind it.
//
// Covers: E-44
func TestAHeldStreamWhoseHeadWasLostFailsWhenItsTimeComes(t *testing.T) {
	st := newStage(t, "a")
	st.claim()
	st.lose()
	require.Equal(t, "a", st.claim())
	ok, left := st.refuse(10)
	require.True(t, ok)
	require.False(t, left)
	st.append("b")
	require.True(t, st.s.Held())
	w := st.tickets["a"].Withdraw()
	require.True(t, w.Won && w.Broke)
	require.Equal(t, MaybeExecuted, w.Fate)
	require.Zero(t, st.l.Due(9))
	require.Zero(t, st.l.Due(10), "nothing comes back")
	require.Equal(t, 1, st.l.Untold())
	st.l.Settle(none, WhyBroken, st.tell)
	require.Equal(t, []string{"b " + whyNames[WhyBroken]}, st.told)
	require.True(t, st.s.Broken())
	require.True(t, st.l.Empty())
	require.NoError(t, st.l.Check())
}

func TestForgetLeavesNothingOfAHeldStream(t *testing.T) {
	st := newStage(t, "a", "b")
	st.claim()
	ok, _ := st.refuse(10)
	require.True(t, ok, "b's answer is still out")
	st.append("c")
	st.append("d")
	require.Equal(t, 3, st.l.Waiting())
	require.True(t, st.tickets["a"].Withdraw().Won)
	require.True(t, st.tickets["d"].Withdraw().Won)
	cmds, _ := st.l.Held()
	require.Equal(t, 4, cmds, "those who left are still counted")
	st.l.Forget()
	cmds, bytes := st.l.Held()
	require.Equal(t, []int{2, 2}, []int{cmds, bytes})
	require.Equal(t, 1, st.l.Waiting(), "c")
	require.NoError(t, st.l.Check())
}

func TestPendingStopsWhereItIsToldTo(t *testing.T) {
	count := func(l *Log[string], stop int) (n int) {
		l.Pending(func(*Record[string], bool) bool { n++; return n < stop })
		return n
	}
	st := newStage(t, "a", "b")
	st.claim()
	_, _ = st.refuse(10)
	st.append("c")
	require.Equal(t, 3, count(&st.l, 100))
	for stop := 1; stop <= 3; stop++ {
		require.Equal(t, stop, count(&st.l, stop))
	}

	var l Log[string]
	for _, o := range []string{"x", "y"} {
		again(&l, new(Ticket[string]), o, 1)
	}
	_, ok := l.Claim(10, 100, false)
	require.True(t, ok)
	var c Chunk[string]
	l.Begin(&c)
	for range 2 {
		r := c.Peek()
		require.True(t, r.Decide())
		gone, _ := l.Refuse(r, c.Encoded(r), nil, 5, nil)
		require.True(t, gone)
		c.Take()
		require.Len(t, c.Encoded(r), 1, "also of the one taken last")
	}
	l.End(&c)
	require.Equal(t, 2, count(&l, 100))
	require.Equal(t, 1, count(&l, 1))
}

// What expects no reply says nothing about how late a reply is.
func TestTheOldestInFlightIsTheFirstThatExpectsAReply(t *testing.T) {
	var l Log[string]
	l.Append(&Record[string]{Owner: "quiet", Start: 1, Block: 100}, []byte("q"))
	_, ok := l.Oldest()
	require.False(t, ok)
	_, claimed := l.Claim(10, 100, false)
	require.True(t, claimed)
	_, ok = l.Oldest()
	require.False(t, ok, "nothing is awaited")
	require.Zero(t, l.Blocks())
	l.Append(&Record[string]{Owner: "loud", Start: 2, Block: 7, Frames: 1}, []byte("l"))
	_, ok = l.Oldest()
	require.False(t, ok, "it is not in flight")
	require.Zero(t, l.Blocks())
	_, claimed = l.Claim(10, 100, false)
	require.True(t, claimed)
	start, ok := l.Oldest()
	require.True(t, ok)
	require.Equal(t, int64(2), start)
	require.Equal(t, uint32(7), l.Blocks())
}

// A record left for elsewhere, and its stream broke in front of it before it came back.
//
// Covers: E-2
func TestARecordThatComesBackBehindABreakOfItsStreamFails(t *testing.T) {
	st := newStage(t, "a", "b")
	st.claim()
	st.l.Begin(&st.chunk)
	b := &st.l.head.recs[1]
	require.True(t, b.Decide())
	w, ok := st.l.Leave(b, []byte("b"))
	require.True(t, ok)
	st.l.Settle(func(r *Record[string]) bool { return r.Owner == "a" }, WhyExpired, st.tell)
	require.Zero(t, st.l.Splice([]Away[string]{w}))
	st.l.Settle(none, WhyBroken, st.tell)
	require.Equal(t, []string{"a " + whyNames[WhyExpired], "b " + whyNames[WhyBroken]}, st.told)
}

// The stream of a refused record broke before it: the refusal is its answer, and it does not wait to go again.
//
// Covers: E-44
func TestARefusalBehindABreakOfItsStreamIsTheAnswer(t *testing.T) {
	st := newStage(t, "a", "b")
	st.claim()
	b := &st.l.head.recs[1]
	require.True(t, b.Decide())
	st.l.Settle(func(r *Record[string]) bool { return r.Owner == "a" }, WhyExpired, st.tell)
	ok, left := st.l.Refuse(b, []byte("b"), []byte("-no"), 5, st.tell)
	require.False(t, ok)
	require.False(t, left)
	require.True(t, b.Deciding(), "the reader delivers it")
	require.False(t, st.s.Held())
	require.Zero(t, st.l.Waiting())
}

// A record without reply is in the reader's hands when the connection is cut: it is the reader's to tell.
//
// Covers: E-3
func TestACutLeavesARecordWithoutReplyToTheReaderThatHasIt(t *testing.T) {
	var l Log[string]
	var ticket Ticket[string]
	again(&l, &ticket, "quiet", 0)
	s, ok := l.Claim(10, 100, false)
	require.True(t, ok)
	require.True(t, l.head.recs[0].Decide())
	l.Cut(Death[string]{Last: s, Written: len(s.Bytes)}, func(e End[string]) { t.Errorf("%s was told", e.Owner) })
	require.Equal(t, deciding, ticket.word)
	_, ok = l.Claim(10, 100, false)
	require.False(t, ok, "nor is it sent again")
	require.NoError(t, l.Check())
}

func TestFatesAndClassesHaveNames(t *testing.T) {
	require.Equal(t, []string{"maybe executed", "not sent", "answered", "maybe executed"},
		[]string{Fate(0).String(), NotSent.String(), Answered.String(), Fate(9).String()})
	require.Equal(t, []string{"no retry", "replay", "no retry"}, []string{Class(0).String(), Replay.String(), Class(9).String()})
}

// The oldest record in flight is in the claim that is being written, or in an earlier one: WriteTimeout and ReadTimeout
// depend on it. What was answered may end just where a block ends.
func TestReachesFindsTheOldestRecordInFlightOverTheEndOfABlock(t *testing.T) {
	var l Log[string]
	for _, owner := range []string{"a", "b", "c"} {
		r := Record[string]{Owner: owner, Frames: 1}
		l.Append(&r, make([]byte, BigRequest)) // in a block of its own
	}
	claim := func() Span[string] {
		span, ok := l.Claim(1, 1<<20, false)
		require.True(t, ok)
		require.Equal(t, BigRequest, span.Size)
		return span
	}
	require.False(t, l.Reaches(Span[string]{}))
	answer := func() {
		var c Chunk[string]
		l.Begin(&c)
		require.True(t, c.Peek().Decide())
		c.Peek().Settle()
		c.Take()
		l.End(&c)
	}
	a := claim()
	require.True(t, l.Reaches(a))
	b := claim()
	require.True(t, l.Reaches(a))
	require.False(t, l.Reaches(b))
	answer()
	require.True(t, l.Reaches(b))
	require.False(t, l.Reaches(a))
	answer() // the next one is claimed when the reader stands at the end of this one
	require.False(t, l.Reaches(b))
	c := claim()
	require.True(t, l.Reaches(c))
	require.False(t, l.Reaches(b))
}
