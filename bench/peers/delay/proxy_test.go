package delay

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends everything back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func through(t *testing.T, rtt time.Duration) net.Conn {
	t.Helper()
	p, err := Listen("127.0.0.1:0", echo(t), rtt)
	require.NoError(t, err)
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, p.Close())
	})
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	return c
}

func TestARoundTripTakesAtLeastAsLongAsItShould(t *testing.T) {
	const rtt = 20 * time.Millisecond
	c := through(t, rtt)
	for range 5 {
		from := time.Now()
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(from), rtt)
	}
}

func TestWhatIsUnderWayDoesNotWaitForWhatWentBefore(t *testing.T) {
	const rtt, n = 200 * time.Millisecond, 20
	c := through(t, rtt)
	from := time.Now()
	go func() {
		for range n {
			_, _ = c.Write([]byte("x"))
		}
	}()
	_, err := io.ReadFull(c, make([]byte, n))
	require.NoError(t, err)
	require.Less(t, time.Since(from), n*rtt/2, "one after the other they would take twenty round trips")
}

func TestBytesAndTheEndArriveWholeAndInOrder(t *testing.T) {
	for _, rtt := range []time.Duration{0, 5 * time.Millisecond} {
		c := through(t, rtt)
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		go func() {
			_, _ = c.Write(sent)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got))
	}
}

func TestATargetThatIsGoneEndsTheConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	p, err := Listen("127.0.0.1:0", l.Addr().String(), 0)
	require.NoError(t, err)
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, p.Close())
}

func TestCloseEndsConnectionsThatAreInUse(t *testing.T) {
	p, err := Listen("127.0.0.1:0", echo(t), time.Millisecond)
	require.NoError(t, err)
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, p.Close())
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
}
