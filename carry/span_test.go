package carry

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// whole returns the bytes of s, and looks at its parts from several bytes on.
func whole[T any](t testing.TB, s *Span[T]) []byte {
	all := slices.Concat(s.Parts(nil, 0)...)
	if len(all) != s.Size || !bytes.HasPrefix(all, s.Bytes) {
		t.Fatalf("a span of %d bytes has %d", s.Size, len(all))
	}
	for _, n := range []int{0, 1, len(s.Bytes) - 1, len(s.Bytes), len(s.Bytes) + 1, s.Size / 2, s.Size - 1, s.Size} {
		if n = min(n, s.Size); !bytes.Equal(slices.Concat(s.Parts(nil, n)...), all[n:]) {
			t.Fatalf("the parts of a span of %d bytes, from %d on, are others", s.Size, n)
		}
	}
	for n := 0; n < s.Size; {
		part := s.Part(n)
		if len(part) == 0 || !bytes.HasPrefix(all[n:], part) {
			t.Fatalf("the part of a span of %d bytes at %d is another", s.Size, n)
		}
		n += len(part)
	}
	return all
}

// large returns a log with requests of these sizes, each in a block of its own if it is large, and of one byte value.
func large(t *testing.T, sizes ...int) *Log[int] {
	l := new(Log[int])
	for i, size := range sizes {
		l.Append(&Record[int]{Owner: i, Frames: 1, Class: Replay, Budget: 3}, bytes.Repeat([]byte{byte('a' + i)}, size))
	}
	require.NoError(t, l.Check())
	return l
}

// answer answers the n oldest commands.
func answer(t *testing.T, l *Log[int], n int) {
	var c Chunk[int]
	l.Begin(&c)
	for range n {
		require.True(t, c.Peek().Decide())
		c.Peek().Settle()
		c.Take()
	}
	l.End(&c)
	require.NoError(t, l.Check())
}

// Covers: S4-3, E-36
func TestBigBlocksThatFollowEachOtherAreOneSpanAsFarAsLimitsAllow(t *testing.T) {
	const b = BigRequest
	for name, c := range map[string]struct {
		sizes []int
		cmds  int
		bytes int
		alone bool
		dead  []int
		want  []int // commands of each claim
	}{
		"as many as fit into a write":      {sizes: []int{64 << 10, 64 << 10, 64 << 10, 64 << 10, b, b}, want: []int{4, 2}},
		"the smallest":                     {sizes: slices.Repeat([]int{b}, 40), want: []int{16, 16, 8}},
		"one that is too large goes alone": {sizes: []int{b, 300 << 10, b, b}, want: []int{1, 1, 2}},
		"not behind small ones":            {sizes: []int{10, 10, b, b, 10, b}, want: []int{2, 2, 1, 1}},
		"the window":                       {sizes: []int{b, b, b, b, b}, cmds: 2, want: []int{2, 2, 1}},
		"the window in bytes":              {sizes: []int{b, b, b, b, b}, bytes: 2*b + 1, want: []int{2, 2, 1}},
		"alone":                            {sizes: []int{b, b, b}, alone: true, want: []int{1, 1, 1}},
		"what has died is left out":        {sizes: []int{b, b, b, b}, dead: []int{1, 2}, want: []int{2}},
		"what has died first":              {sizes: []int{b, b, b}, dead: []int{0}, want: []int{2}},
		"all but one have died":            {sizes: []int{b, b, b}, dead: []int{0, 2}, want: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := new(Log[int])
			tickets := make([]Ticket[int], len(c.sizes))
			for i, size := range c.sizes {
				r := Record[int]{Owner: i, Frames: 1}
				r.Attach(&tickets[i])
				l.Append(&r, bytes.Repeat([]byte{byte('a' + i)}, size))
			}
			for _, i := range c.dead {
				require.True(t, tickets[i].Withdraw().Won)
			}
			if c.cmds == 0 {
				c.cmds = 1000
			}
			if c.bytes == 0 {
				c.bytes = 1 << 30
			}
			var got []int
			for {
				s, ok := l.Claim(c.cmds, c.bytes, c.alone)
				if !ok {
					break
				}
				whole(t, &s)
				require.NoError(t, l.Check())
				require.Equal(t, s.Split(), s.Commands > 1 && c.sizes[0] >= b || len(s.Parts(nil, 0)) > 1)
				got = append(got, s.Commands)
				l.Written()
				answer(t, l, s.Commands)
			}
			require.Equal(t, c.want, got)
			require.True(t, l.Empty())
		})
	}
}

// Covers: S4-3
func TestWhatExpectsNoReplyIsNoPartOfALongSpan(t *testing.T) {
	l := new(Log[int])
	for i, frames := range []uint16{1, 0, 1, 1, 0} {
		l.Append(&Record[int]{Owner: i, Frames: frames}, make([]byte, BigRequest))
	}
	for _, want := range []int{1, 1, 2, 1} {
		s, ok := l.Claim(100, 1<<30, false)
		require.True(t, ok)
		require.Equal(t, want, s.Commands)
		require.NoError(t, l.Check())
	}
}

// At each byte that a connection may have died at: what had left is charged, what had not is not, and all go again in order.
//
// Covers: E-36
func TestACutAtAnyByteOfALongSpanChargesWhatHadLeft(t *testing.T) {
	sizes := []int{BigRequest, BigRequest + 7, BigRequest + 100, BigRequest}
	ends := []int{sizes[0], sizes[0] + sizes[1], sizes[0] + sizes[1] + sizes[2], sizes[0] + sizes[1] + sizes[2] + sizes[3]}
	for _, answered := range []int{0, 1, 2} {
		for _, end := range ends {
			for _, written := range []int{end - 1, end, min(end+1, ends[3])} {
				l := large(t, sizes...)
				s, ok := l.Claim(100, 1<<30, false)
				require.True(t, ok)
				require.Equal(t, 4, s.Commands)
				if answered > 0 && written < ends[answered-1] {
					continue // no answer before the request
				}
				answer(t, l, answered)
				l.Written() // the blocks of what was answered are used again
				require.NoError(t, l.Check())
				left := 0
				for i, e := range ends {
					if i >= answered && e <= written {
						left++
					}
				}
				require.True(t, l.Reaches(s))
				require.Equal(t, ends[answered] <= written, l.Left(&s, written))
				repeats, any := l.Cut(Death[int]{Last: s, Written: written}, func(e End[int]) { t.Fatalf("%d ended", e.Owner) })
				require.Equal(t, left, repeats, "answered %d, written %d", answered, written)
				require.Equal(t, left > 0, any)
				require.NoError(t, l.Check())
				s, ok = l.Claim(100, 1<<30, false)
				require.True(t, ok)
				require.Equal(t, 4-answered, s.Commands)
				all := whole(t, &s)
				for i := answered; i < 4; i++ {
					require.Equal(t, bytes.Repeat([]byte{byte('a' + i)}, sizes[i]), all[:sizes[i]])
					all = all[sizes[i]:]
				}
			}
		}
	}
}

// A NoRetry command of a long span that had left fails as such, one that had not goes again.
//
// Covers: S4-3
func TestOnlyWhatHadLeftOfALongSpanMayHaveRun(t *testing.T) {
	for written := 1; written <= 3*BigRequest; written += BigRequest / 2 {
		l := new(Log[int])
		for i := range 3 {
			l.Append(&Record[int]{Owner: i, Frames: 1}, make([]byte, BigRequest))
		}
		s, _ := l.Claim(100, 1<<30, false)
		var ends []End[int]
		l.Cut(Death[int]{Last: s, Written: written}, func(e End[int]) { ends = append(ends, e) })
		require.Len(t, ends, written/BigRequest)
		for i, e := range ends {
			require.Equal(t, i, e.Owner)
			require.Equal(t, MaybeExecuted, e.Fate)
		}
		s, _ = l.Claim(100, 1<<30, false)
		require.Equal(t, 3-len(ends), s.Commands)
	}
}
