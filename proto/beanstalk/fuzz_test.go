package beanstalk

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzScanner holds a Scanner and Parse to five things on any bytes: they never panic; where the stream is split
// changes nothing; a prefix of a frame asks for more, and never for more than the frame has; a frame that was found
// can be taken apart, to the same length; nothing shown is kept (the bytes are destroyed after each call).
func FuzzScanner(f *testing.F) {
	for i, l := range legal {
		f.Add([]byte(l.frame+legal[(i+7)%len(legal)].frame), uint8(i%11+1))
	}
	for _, frame := range illegal {
		f.Add([]byte("DELETED\r\n"+frame), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		whole, kinds, err := scanAll(t, bytes.Clone(stream), len(stream)+1)
		some, someKinds, someErr := scanAll(t, bytes.Clone(stream), int(piece)+1)
		require.Equal(t, whole, some)
		require.Equal(t, kinds, someKinds)
		require.Equal(t, err == nil, someErr == nil)
		require.True(t, strings.HasPrefix(string(stream), strings.Join(whole, "")))
		for i, frame := range whole {
			checkPrefixes(t, frame)
			r, n, err := Parse([]byte(frame))
			require.NoError(t, err)
			require.Equal(t, len(frame), n)
			require.Equal(t, kinds[i] == KindRefusal, r.Word.Refusal())
		}
		_, _, _ = Parse(stream)
		checkLinear(t, stream)
	})
}

// checkLinear brings a stream byte by byte: each byte is looked at a bounded number of times.
func checkLinear(t *testing.T, stream []byte) {
	s := NewScanner(Limits{})
	for start, end := 0, 0; end <= len(stream); {
		n, _, _, err := s.Next(stream[start:end])
		if err != nil {
			break
		}
		if start += n; n == 0 {
			end++
		}
	}
	require.LessOrEqual(t, s.visited, 4*len(stream)+4)
}

func checkPrefixes(t *testing.T, frame string) {
	s := NewScanner(Limits{})
	step := len(frame)/50 + 1
	for i := 0; i < len(frame); i += step {
		b := []byte(frame[:i])
		n, need, _, err := s.Next(b)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Greater(t, need, i)
		require.LessOrEqual(t, need, len(frame))
		clear(b)
	}
	n, _, _, err := s.Next([]byte(frame))
	require.NoError(t, err)
	require.Equal(t, len(frame), n)
}

// FuzzRequest holds the encoders to one thing: whatever they are given, what comes out is one line, or one line and
// a body of the announced length.
func FuzzRequest(f *testing.F) {
	f.Add("a", []byte("x"), uint32(1))
	f.Add("a\r\nquit", []byte("\r\nquit\r\n"), uint32(0))
	f.Fuzz(func(t *testing.T, name string, body []byte, n uint32) {
		for _, enc := range []func([]byte, string) ([]byte, error){AppendUse, AppendWatch, AppendIgnore, AppendStatsTube} {
			b, err := enc(nil, name)
			require.Equal(t, CheckName(name) == nil, err == nil)
			require.Equal(t, CheckName(name) == nil, validName([]byte(name)))
			if err == nil {
				require.Equal(t, len(b)-1, bytes.IndexByte(b, '\n'))
				require.Equal(t, len(b)-2, bytes.IndexByte(b, '\r'))
				require.Equal(t, 1, bytes.Count(b, []byte(" ")))
			} else {
				require.Empty(t, b)
			}
		}
		put := AppendPut(nil, n, n, n, body)
		line, rest, ok := bytes.Cut(put, []byte("\r\n"))
		require.True(t, ok)
		require.Len(t, bytes.Fields(line), 5)
		require.Equal(t, string(body)+"\r\n", string(rest))
	})
}

// FuzzDict holds the readers of bodies to: no panic, and no line of a body lost.
func FuzzDict(f *testing.F) {
	f.Add([]byte("---\na: b\n"))
	f.Add([]byte("---\n- a\n- \"b\\\"\"\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines := 0
		for line := range bytes.Lines(body) {
			if len(bytes.TrimRight(line, "\r\n")) > 0 {
				lines++
			}
		}
		if pairs, err := ParseDict(body); err == nil {
			require.Equal(t, lines-1, len(pairs))
		}
		if list, err := ParseList(body); err == nil {
			require.Equal(t, lines-1, len(list))
		}
	})
}
