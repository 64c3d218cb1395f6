package beanstalk

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scanAll feeds stream in pieces, as an engine's reader does, and returns the frames.
func scanAll(t *testing.T, stream []byte, piece int) (frames []string, kinds []Kind, err error) {
	s := NewScanner(Limits{})
	var buf []byte
	for len(stream) > 0 {
		n := min(piece, len(stream))
		buf = append(bytes.Clone(buf), stream[:n]...)
		stream = stream[n:]
		for len(buf) > 0 {
			n, need, kind, err := s.Next(buf)
			if err != nil {
				return frames, kinds, err
			}
			if n == 0 {
				require.Greater(t, need, len(buf))
				break
			}
			frames, kinds = append(frames, string(buf[:n])), append(kinds, kind)
			clear(buf[:n])
			buf = buf[n:]
		}
	}
	return frames, kinds, nil
}

func TestEveryReplyIsFramedAndTakenApart(t *testing.T) {
	seen := map[Word]bool{}
	for _, l := range legal {
		n, _, kind, err := NewScanner(Limits{}).Next([]byte(l.frame + "NOT_FOUND\r\n"))
		require.NoError(t, err, l.frame)
		require.Equal(t, len(l.frame), n)
		require.Equal(t, l.want.Word.Refusal(), kind == KindRefusal)
		r, n, err := Parse([]byte(l.frame + "rest"))
		require.NoError(t, err, l.frame)
		require.Equal(t, len(l.frame), n)
		require.Equal(t, l.want, r)
		require.Equal(t, l.want.Word, WordOf([]byte(r.Word.String())))
		seen[r.Word] = true
	}
	for w := Inserted; w < words; w++ {
		require.True(t, seen[w], "%v has no example", w)
	}
	require.Empty(t, Word(200).String())
	require.False(t, Word(200).Refusal())
}

func TestWhatIsNotTheProtocolIsATypedErrorForGood(t *testing.T) {
	for _, frame := range illegal {
		s := NewScanner(Limits{})
		_, _, _, err := s.Next([]byte(frame))
		var pe *ProtocolError
		require.ErrorAs(t, err, &pe, "%q", frame)
		require.NotEmpty(t, pe.Reason)
		_, _, _, again := s.Next([]byte("DELETED\r\n"))
		require.Equal(t, err, again)
		_, _, err = Parse([]byte(frame))
		require.ErrorAs(t, err, &pe, "%q", frame)
		_, _, err = scanAll(t, []byte(frame), 1)
		require.Error(t, err, "%q", frame)
	}
}

func TestLinesAndBodiesHaveALimit(t *testing.T) {
	s := NewScanner(Limits{})
	_, need, _, err := s.Next(bytes.Repeat([]byte("A"), 1023))
	require.NoError(t, err)
	require.Equal(t, 1024, need)
	_, _, _, err = s.Next(bytes.Repeat([]byte("A"), 1024))
	require.ErrorContains(t, err, "too long")

	_, _, _, err = NewScanner(Limits{Body: 10}).Next([]byte("OK 11\r\n"))
	require.ErrorContains(t, err, "too long")
	_, need, _, err = NewScanner(Limits{Body: 10}).Next([]byte("OK 10\r\n"))
	require.NoError(t, err)
	require.Equal(t, 7+10+2, need)
	_, _, _, err = NewScanner(Limits{}).Next(fmt.Appendf(nil, "RESERVED 1 %d\r\n", DefaultBody+1))
	require.ErrorContains(t, err, "too long")
	_, _, _, err = NewScanner(Limits{Line: -1, Body: -1}).Next(fmt.Appendf(nil, "RESERVED 1 %d\r\n", DefaultBody+1))
	require.NoError(t, err)

	require.NoError(t, Limits{}.Validate())
	require.NoError(t, Limits{Line: -1}.Validate())
	require.ErrorContains(t, Limits{Line: 20}.Validate(), "is 20")
	frame := "USING " + strings.Repeat("a", MaxName) + "\r\n"
	require.Len(t, frame, longestLine)
	n, _, _, err := NewScanner(Limits{Line: longestLine}).Next([]byte(frame))
	require.NoError(t, err)
	require.Equal(t, longestLine, n)
}

// A job body whose line end fell on the edge of the read buffer used to be cut short, or to leave bytes for the next
// reply, in more than one client (C46 a).
func TestBodiesOfAnySizeInAnyPiecesAreExactAndTheNextReplyIsRight(t *testing.T) {
	sizes := []int{}
	for n := range 2101 {
		sizes = append(sizes, n)
	}
	for _, at := range []int{4096, 8192, 16384, 65536} {
		for n := at - 40; n <= at+40; n++ {
			sizes = append(sizes, n)
		}
	}
	const bait = "\r\nRESERVED 1 1\r\n"
	for _, size := range sizes {
		body := strings.Repeat(bait, size/len(bait)+1)[:size]
		frame := fmt.Sprintf("RESERVED 42 %d\r\n%s\r\n", size, body)
		stream := []byte(frame + "NOT_FOUND\r\n")
		for _, piece := range []int{1, 511, len(stream)} {
			s := NewScanner(Limits{})
			var got []string
			for at, end := 0, 0; at < len(stream); {
				n, _, _, err := s.Next(stream[at:end])
				switch {
				case err != nil:
					t.Fatalf("size %d in pieces of %d: %v", size, piece, err)
				case n > 0:
					got = append(got, string(stream[at:at+n]))
					at += n
				case end == len(stream):
					t.Fatalf("size %d in pieces of %d: asks for more than there is", size, piece)
				default:
					end = min(end+piece, len(stream))
				}
			}
			require.Equal(t, []string{frame, "NOT_FOUND\r\n"}, got)
		}
		r, _, err := Parse([]byte(frame))
		require.NoError(t, err)
		require.Equal(t, body, string(r.Body))
	}
}

// Covers: E-48
func TestABigBodyInManyPiecesIsLookedAtOnce(t *testing.T) {
	const size = 14 << 20
	stream := make([]byte, 0, size+100)
	stream = fmt.Appendf(stream, "FOUND 1 %d\r\n", size)
	head := len(stream)
	stream = append(append(stream, make([]byte, size)...), "\r\n"...)
	s := NewScanner(Limits{})
	for at := 64 << 10; ; at += 64 << 10 {
		n, need, _, err := s.Next(stream[:min(at, len(stream))])
		require.NoError(t, err)
		if n > 0 {
			require.Equal(t, len(stream), n)
			break
		}
		require.Equal(t, len(stream), need, "the size is known from the line on")
	}
	require.LessOrEqual(t, s.visited, 2*head)

	s = NewScanner(Limits{})
	line := []byte("USING " + strings.Repeat("x", 200) + "\r\n")
	for i := range len(line) + 1 {
		_, _, _, err := s.Next(line[:i])
		require.NoError(t, err)
	}
	require.LessOrEqual(t, s.visited, 2*len(line), "a line in one-byte pieces")
}

func TestFramingAndParsingDoNotAllocate(t *testing.T) {
	stream := []byte("INSERTED 123456\r\nRESERVED 12 5\r\nhello\r\nNOT_FOUND\r\n")
	s := NewScanner(Limits{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for rest := stream; len(rest) > 0; {
			n, _, _, err := s.Next(rest)
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			if _, m, err := Parse(rest); err != nil || m != n {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
	}))
}
