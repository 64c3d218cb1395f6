package resp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A bulk value must be followed by both bytes of a line end: one of them alone may be part of a value that is longer
// than its length says.
func TestABulkMustEndWithBothBytesOfALineEnd(t *testing.T) {
	for _, head := range []string{"$3\r\nabc", "!3\r\nabc", "=7\r\ntxt:abc", "*1\r\n$3\r\nabc"} {
		for _, end := range []string{"x\n", "\rx", "\n\r", "\n\n", "\r\r", "xx"} {
			_, _, _, err := NewScanner(Limits{}).Next([]byte(head + end))
			var pe *ProtocolError
			require.ErrorAs(t, err, &pe, "%q", head+end)
		}
		n, _, _, err := NewScanner(Limits{}).Next([]byte(head + "\r\n"))
		require.NoError(t, err)
		require.Equal(t, len(head)+2, n)
	}
}
