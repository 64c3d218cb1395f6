package carry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A hostile or broken server may answer what has not been written to its end. The bytes stay where the writer looks
// at them until it says that it is done, whatever is appended meanwhile.
func TestABlockThatIsBeingWrittenIsNotGivenToOthers(t *testing.T) {
	for _, blocks := range []int{1, 3} {
		want := 20
		var l Log[string]
		for range blocks {
			again(&l, new(Ticket[string]), "mine", 1)
			if want++; blocks > 1 {
				want++
				l.Append(&Record[string]{Owner: "large", Frames: 1}, make([]byte, BigRequest)) // ends the block
			}
		}
		s, ok := l.Claim(1, 1<<20, false)
		require.True(t, ok)
		require.Equal(t, "mine", string(s.Bytes))
		var c Chunk[string]
		l.Begin(&c)
		deliver(t, &c)
		l.End(&c)
		require.NoError(t, l.Check())
		for range 20 {
			again(&l, new(Ticket[string]), "theirs", 1)
		}
		require.Equal(t, "mine", string(s.Bytes), "it is being written")
		l.Written()
		require.NoError(t, l.Check())
		cmds, _ := l.Held()
		require.Equal(t, want-1, cmds, "one was answered")
	}
}
