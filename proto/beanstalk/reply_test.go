package beanstalk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFirstLineOfAReplyIsReadBeforeItsBodyIsThere(t *testing.T) {
	for _, c := range []struct {
		buf string
		ok  bool
		id  uint64
	}{
		{"RESERVED 7 3\r\n", true, 7},
		{"RESERVED 7 3\r\nab", true, 7},
		{"RESERVED 7 3\r\nabc\x00\x00", true, 7},
		{"RESERVED 7 3\r", false, 0},
		{"RESERVED x 3\r\n", false, 0},
		{"RESERVED 7\r\n", false, 0},
		{"no reply\r\n", false, 0},
		{"", false, 0},
	} {
		r, ok := Begins([]byte(c.buf))
		require.Equal(t, c.ok, ok, c.buf)
		if ok {
			require.Equal(t, Reserved, r.Word)
			require.Equal(t, c.id, r.Number)
			require.Nil(t, r.Body)
		}
	}
}
