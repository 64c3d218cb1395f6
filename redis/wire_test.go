package redis

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/proto/resp"
)

// Each read copied all that had been received of the frame so far. A message of some megabytes that came while a
// Subscription was restored kept the dial busy until its timeout.
// Covers: E-48
func TestALargeFrameInAHandshakeIsNotCopiedWithEachRead(t *testing.T) {
	client, server := memnet.Pipe(memnet.Options{ToClient: 4 << 10})
	defer client.Close()
	value := bytes.Repeat([]byte("x"), 4<<20)
	done := make(chan error)
	go func() {
		_, err := server.Write(resp.AppendBulk([]byte("+first\r\n"), value))
		_ = server.Close()
		done <- err
	}()
	w := newWire(client, "")
	w.limit = 8 << 20
	first, _, err := w.frame()
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	frame, _, err := w.frame()
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, resp.AppendBulk(nil, value), frame)
	require.Equal(t, "+first\r\n", string(first), "what was handed out stays as it is")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(40<<20), "bytes allocated for a frame of 4 MiB")
}
