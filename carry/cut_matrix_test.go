package carry

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// situation is one record at the moment its connection dies, with a later one of its stream queued, and a neighbour
// that is published behind it and not written.
type situation struct {
	replay, left, before, abandoned, spent, late, stream, strict, alone bool
}

func (s situation) String() string { return fmt.Sprintf("%+v", struct{ situation }{s}) }

// expected is the table in docs/ENGINE.md, read row by row.
func (s situation) expected() (why string, kept, breaks bool) {
	maybe := s.left || s.before
	switch {
	case s.abandoned:
		return "", false, maybe && s.stream
	case !s.left:
		return "", true, false
	case !s.replay:
		why = "no-retry"
	case s.late:
		why = "expired"
	case s.spent && s.alone:
		why = "poisoned"
	case s.spent:
		why = "budget"
	default:
		return "", true, false
	}
	return why, false, s.stream
}

// Covers: S4-5, S4-6, E-5
func TestCutDecidesEachCombinationByTheFirstRowThatFits(t *testing.T) {
	for bits := range 1 << 9 {
		bit := func(i int) bool { return bits>>i&1 == 1 }
		s := situation{bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7), bit(8)}
		if s.before && !s.replay {
			continue // it would not be here any more
		}
		t.Run(fmt.Sprintf("%09b", bits), func(t *testing.T) { s.check(t) })
	}
}

func (s situation) check(t *testing.T) {
	var l Log[string]
	var stream Stream[string]
	var ticket Ticket[string]
	sends := 0
	if s.before {
		sends = 1
	}
	r := Record[string]{Owner: "it", Frames: 1, Budget: 5}
	if s.spent {
		r.Budget = uint16(sends)
	}
	if s.replay {
		r.Class = Replay
	}
	if s.late {
		r.SettleBy = 10
	}
	later := Record[string]{Owner: "later", Frames: 1}
	if s.stream {
		r.Stream, later.Stream = &stream, &stream
	}
	r.Attach(&ticket)
	none := func(e End[string]) { t.Fatalf("%s ended early", e.Owner) }
	l.Append(&r, []byte("it"))
	l.Append(&Record[string]{Owner: "next", Frames: 1}, []byte("next"))
	if s.before {
		span, _ := l.Claim(1, 100, false)
		l.Cut(Death[string]{Now: 1, Last: span, Written: 2}, none)
	}
	span, ok := l.Claim(2, 100, false)
	require.True(t, ok)
	require.Equal(t, 2, span.Commands)
	l.Append(&later, []byte("later"))
	if s.abandoned {
		require.True(t, ticket.Withdraw().Won)
	}
	d := Death[string]{Now: 10, Last: span, Written: 1, Strict: s.strict, Alone: s.alone}
	if s.left {
		d.Written = 2 // the last byte of it, none of the next
	}
	got := map[string]End[string]{}
	repeats, left := l.Cut(d, func(e End[string]) {
		require.NotContains(t, got, e.Owner)
		got[e.Owner] = e
	})

	why, kept, breaks := s.expected()
	want := map[string]End[string]{}
	if why != "" {
		e := End[string]{Owner: "it", Stream: r.Stream, Why: got["it"].Why, Fate: MaybeExecuted, Sends: sends + 1}
		require.Equal(t, why, whyNames[e.Why])
		want["it"] = e
	}
	if breaks {
		want["later"] = End[string]{Owner: "later", Stream: &stream, Why: WhyBroken, Fate: NotSent}
	}
	if s.strict && why != "" {
		want["next"] = End[string]{Owner: "next", Why: WhyStrict, Fate: NotSent}
	}
	require.Equal(t, want, got, "%v", s)
	require.Equal(t, breaks, stream.Broken())
	require.Equal(t, s.left && !s.abandoned, left)
	require.Equal(t, map[bool]int{true: 1}[kept && s.left], repeats)
	require.NoError(t, l.Check())

	// What is kept goes out again, first and in order; nothing else does.
	wire := ""
	for _, x := range []struct {
		bytes string
		goes  bool
	}{{"it", kept}, {"next", want["next"].Owner == ""}, {"later", !breaks}} {
		if x.goes {
			wire += x.bytes
		}
	}
	again, _ := l.Claim(3, 100, false)
	require.Equal(t, wire, string(again.Bytes))
	if kept {
		require.Equal(t, Withdrawal{Won: true, Flying: true, Fate: MaybeExecuted, Sends: sends + 1 + map[bool]int{true: 1}[s.left]}, seen(ticket.Withdraw()),
			"in flight again")
	}
}
