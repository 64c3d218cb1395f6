package carry

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestMemoryThatIsAskedForStaysAsItIs(t *testing.T) {
	b := make([]byte, 4096)
	for i := range b {
		b[i] = byte(i)
	}
	for i := range b {
		prefetchLines(unsafe.Pointer(&b[i])) // at last also what lies behind b
	}
	prefetchLines(nil)
	for i := range b {
		require.Equal(t, byte(i), b[i])
	}
}
