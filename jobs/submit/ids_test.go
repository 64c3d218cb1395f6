package submit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Ids that differ only in what is no text became one id, and all but one of their jobs were lost.
func TestAnIDThatIsNoTextMakesTheLineCorrupt(t *testing.T) {
	for _, line := range []string{"{\"id\":\"\xff\",\"payload\":1}", `{"id":"\ud800","payload":1}`} {
		p := parser{format: FormatNDJSON}
		_, ok, err := p.parse([]byte(line), 1)
		require.True(t, ok)
		require.ErrorContains(t, err, "not valid UTF-8", "%q", line)
	}
}
