package resp

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzScanner holds a Scanner to four things on any bytes: it never panics; where the stream is split changes
// nothing; a prefix of a frame asks for more, and never for more than the frame has; it keeps no reference to
// what it was shown (the bytes are destroyed after each call and brought again).
func FuzzScanner(f *testing.F) {
	for i, l := range legal {
		f.Add([]byte(l.frame+legal[(i+7)%len(legal)].frame), uint8(i%11+1))
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		whole, kinds, err := scanAll(t, stream, len(stream)+1)
		some, someKinds, someErr := scanAll(t, stream, int(piece)+1)
		require.Equal(t, whole, some)
		require.Equal(t, kinds, someKinds)
		require.Equal(t, err == nil, someErr == nil)
		for _, frame := range whole {
			checkPrefixes(t, frame)
		}
		require.True(t, strings.HasPrefix(string(stream), strings.Join(whole, "")))
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

// FuzzReader holds a Reader to two things: it never panics, and it takes every frame that a Scanner found,
// whole, whichever way it is read.
func FuzzReader(f *testing.F) {
	for _, l := range legal {
		f.Add([]byte(l.frame))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, _, kind, err := NewScanner(Limits{}).Next(b)
		if err != nil || n == 0 {
			_, _ = Decode(b)
			for r := NewReader(b); r.More(); {
				if r.Skip() != nil {
					break
				}
			}
			return
		}
		r := NewReader(b[:n])
		require.NoError(t, r.Skip())
		require.False(t, r.More())
		_, err = Decode(b[:n])
		if kind == Refusal {
			require.IsType(t, Error(""), err)
		} else {
			require.NoError(t, err)
		}
	})
}

// FuzzRequest holds the encoders to one thing: whatever they are given, what comes out is one array of exactly the
// words that went in, for our own Scanner too.
func FuzzRequest(f *testing.F) {
	f.Add("SET", []byte("v\r\n*1\r\n$4\r\nQUIT\r\n"), int64(-1), 1.5)
	f.Add("", []byte{}, int64(math.MinInt64), math.Inf(-1))
	f.Fuzz(func(t *testing.T, word string, raw []byte, n int64, x float64) {
		req, err := AppendCommand([]byte("before"), word, raw, n, x, uint64(n))
		require.NoError(t, err)
		req = req[len("before"):]
		size, _, kind, err := NewScanner(Limits{}).Next(req)
		require.NoError(t, err)
		require.Equal(t, len(req), size)
		require.Equal(t, Reply, kind)
		r := NewReader(req)
		count, err := r.Array()
		require.NoError(t, err)
		require.Equal(t, 5, count)
		for _, want := range []string{word, string(raw), strconv.FormatInt(n, 10)} {
			got, err := r.Text()
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		text, err := r.Text()
		require.NoError(t, err)
		got, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		require.True(t, got == x || x != x, text)
	})
}
