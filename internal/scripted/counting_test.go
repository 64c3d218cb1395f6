package scripted_test

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/scripted"
)

func counting(t *testing.T, network, addr string) (*scripted.Counting, net.Conn) {
	t.Helper()
	s, err := scripted.NewCounting(network, addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	c, err := net.Dial(network, s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return s, c
}

func TestTheCountingServerAnswersEachWholeRequestOnce(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		addr := "127.0.0.1:0"
		if network == "unix" {
			addr = filepath.Join(t.TempDir(), "s")
		}
		s, c := counting(t, network, addr)
		one := scripted.AppendRequest(nil, "ECHO", "a\n*1\r\n$1", strings.Repeat("v", 300), "")
		all := bytes.Repeat(one, 2000)
		go func() {
			// In pieces that cut headers and payloads at every place.
			for i, step := 0, 1; i < len(all); step = step%1777 + 1 {
				end := min(i+step, len(all))
				if _, err := c.Write(all[i:end]); err != nil {
					return
				}
				i = end
			}
		}()
		got := make([]byte, 2000*5)
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte("+OK\r\n"), 2000), got)
		require.EqualValues(t, 2000, s.Frames())
		require.EqualValues(t, len(all), s.Bytes())
		require.Positive(t, s.Reads())
	}
}

func TestTheCountingServerHangsUpOnAnythingElse(t *testing.T) {
	for _, bad := range []string{"PING\r\n", "*1\r\n+x\r\n", "*0\r\n", "*1x\r\n", "*1\n", "*111111111111111111111111111"} {
		s, c := counting(t, "tcp", "127.0.0.1:0")
		_, err := c.Write([]byte(bad))
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
		require.Zero(t, s.Frames())
	}
}

func BenchmarkTheCountingServerTakesAPipeline(b *testing.B) {
	s, err := scripted.NewCounting("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer s.Close()
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(b, err)
	defer c.Close()
	const batch = 1000
	raw := bytes.Repeat(scripted.AppendRequest(nil, "SET", "key:000001", "0123456789"), batch)
	replies := make([]byte, batch*5)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(raw); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, replies); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/request")
}
