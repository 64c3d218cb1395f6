package target

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A password with a / or # in it that is not percent-encoded came back in the parser's words about the port.
func TestATargetThatCannotBeParsedDoesNotShowItsPassword(t *testing.T) {
	for _, text := range []string{
		"redis://:s3cr3t/x@127.0.0.1:1/0", "redis://:s3cr3t#x@127.0.0.1:1/0", "beanstalk://u:s3cr3t/x@h:1/t", "redis://u:123/s3cr3t@h:1",
		"redis://u:123?s3cr3t@h:1", "redis://u:123?S3cr3t@h:1/0?stream=x", "redis://u:s3cr3t@h:99999", "redis://h?s3cr3t=1", "redis://h?a=%zs3cr3t",
		"rediss://:s3cr3t@h?skip_verify=maybe", "kafka://u:s3cr3t@h",
	} {
		err := Check([]string{text}, Options{})
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "s3cr", text)
	}
}
