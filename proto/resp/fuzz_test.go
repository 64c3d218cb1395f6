package resp

import (
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
	})
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
