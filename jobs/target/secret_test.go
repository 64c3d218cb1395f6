package target

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A password with a / or # in it that is not percent-encoded came back in the parser's words about the port.
func TestATargetThatCannotBeParsedDoesNotShowItsPassword(t *testing.T) {
	for _, text := range []string{"redis://:s3cr3t/x@127.0.0.1:1/0", "redis://:s3cr3t#x@127.0.0.1:1/0", "beanstalk://u:s3cr3t/x@h:1/t"} {
		_, err := parseSpec(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "s3cr", text)
	}
}
