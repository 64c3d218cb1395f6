package memnet_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a Read or Write on another goroutine returned.
type result struct {
	n   int
	err error
}

// async runs f and gives its result on a buffered channel.
func async(f func() (int, error)) <-chan result {
	out := make(chan result, 1)
	go func() {
		n, err := f()
		out <- result{n, err}
	}()
	return out
}

func pending(t *testing.T, c <-chan result) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		require.Fail(t, "the call returned", "%+v", r)
	default:
	}
}

func done(t *testing.T, c <-chan result) result {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		return r
	default:
		require.FailNow(t, "the call still blocks")
		return result{}
	}
}

// bubble runs f in a synctest bubble with a fresh pair and closes both ends after it.
func bubble(t *testing.T, o memnet.Options, f func(t *testing.T, c, s *memnet.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, s := memnet.Pipe(o)
		defer func() { _ = c.Close(); _ = s.Close() }()
		f(t, c, s)
	})
}

func mustWrite(t *testing.T, c net.Conn, text string) {
	t.Helper()
	n, err := c.Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
}

func mustRead(t *testing.T, c net.Conn, text string) {
	t.Helper()
	buf := make([]byte, len(text))
	_, err := io.ReadFull(c, buf)
	require.NoError(t, err)
	require.Equal(t, text, string(buf))
}

func mustFailRead(t *testing.T, c net.Conn, want error) {
	t.Helper()
	n, err := c.Read(make([]byte, 8))
	require.ErrorIs(t, err, want)
	require.Zero(t, n)
}

func TestBytesCrossInBothDirectionsWithoutAReaderWaiting(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		mustWrite(t, c, "request")
		mustWrite(t, s, "reply")
		mustRead(t, s, "request")
		mustRead(t, c, "reply")
		require.EqualValues(t, 7, c.Out().Accepted())
		require.EqualValues(t, 7, s.In().Taken())
		require.Equal(t, 1, c.Out().Writes())
		require.Zero(t, c.Out().Buffered())
	})
}

func TestAWriteBlocksAtTheBufferLimitUntilTheReaderTakesBytes(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 4}, func(t *testing.T, c, s *memnet.Conn) {
		w := async(func() (int, error) { return c.Write([]byte("abcdef")) })
		pending(t, w)
		require.Equal(t, 4, c.Out().Buffered())
		mustRead(t, s, "a")
		pending(t, w)
		mustRead(t, s, "bcdef")
		require.Equal(t, result{6, nil}, done(t, w))
	})
}

func TestWithoutABufferAByteIsAcceptedOnlyByAWaitingReader(t *testing.T) {
	bubble(t, memnet.Options{ToServer: -1}, func(t *testing.T, c, s *memnet.Conn) {
		w := async(func() (int, error) { return c.Write([]byte("abc")) })
		pending(t, w)
		require.Zero(t, c.Out().Accepted())
		mustRead(t, s, "ab")
		pending(t, w)
		require.EqualValues(t, 2, c.Out().Accepted())
		mustRead(t, s, "c")
		require.Equal(t, result{3, nil}, done(t, w))
	})
}

func TestAReadDeadlineEndsABlockedReadAtItsTimeAndCanBeMoved(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		start := time.Now()
		require.NoError(t, c.SetReadDeadline(start.Add(time.Second)))
		r := async(func() (int, error) { return c.Read(make([]byte, 1)) })
		pending(t, r)
		require.NoError(t, c.SetReadDeadline(start.Add(3*time.Second)))
		got := <-r
		require.ErrorIs(t, got.err, os.ErrDeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start))
		var ne net.Error
		require.ErrorAs(t, got.err, &ne)
		require.True(t, ne.Timeout())

		mustWrite(t, s, "x")
		mustFailRead(t, c, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		mustRead(t, c, "x")
	})
}

func TestADeadlineInThePastWakesABlockedReaderAtOnce(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		r := async(func() (int, error) { return c.Read(make([]byte, 1)) })
		pending(t, r)
		require.NoError(t, c.SetDeadline(time.Unix(1, 0)))
		require.ErrorIs(t, done(t, r).err, os.ErrDeadlineExceeded)
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

func TestAWriteDeadlineReportsExactlyWhatWasAccepted(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 5}, func(t *testing.T, c, s *memnet.Conn) {
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Minute)))
		n, err := c.Write([]byte("0123456789"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 5, n)
		require.EqualValues(t, 5, c.Out().Accepted())
		mustRead(t, s, "01234")
	})
}

func TestConcurrentWritersTakeTurnsAndDoNotHangABubble(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 3}, func(t *testing.T, c, s *memnet.Conn) {
		first := async(func() (int, error) { return c.Write([]byte("aaaaaa")) })
		pending(t, first)
		second := async(func() (int, error) { return c.Write([]byte("bbb")) })
		pending(t, second)
		mustRead(t, s, "aaaaaabbb")
		require.Equal(t, result{6, nil}, done(t, first))
		require.Equal(t, result{3, nil}, done(t, second))

		third := async(func() (int, error) { return c.Write([]byte("cccccc")) })
		pending(t, third)
		fourth := async(func() (int, error) { return c.Write([]byte("d")) })
		pending(t, fourth)
		require.NoError(t, c.Close())
		require.ErrorIs(t, done(t, third).err, net.ErrClosed)
		require.ErrorIs(t, done(t, fourth).err, net.ErrClosed)
	})
}

func TestCloseEndsTheBlockedCallsOfBothEnds(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 2, ToClient: 2}, func(t *testing.T, c, s *memnet.Conn) {
		mustWrite(t, c, "ab")
		localRead := async(func() (int, error) { return c.Read(make([]byte, 0, 1)[:1]) })
		localWrite := async(func() (int, error) { return c.Write([]byte("c")) })
		pending(t, localRead)
		pending(t, localWrite)
		require.NoError(t, c.Close())
		require.ErrorIs(t, done(t, localRead).err, net.ErrClosed)
		require.ErrorIs(t, done(t, localWrite).err, net.ErrClosed)
		require.ErrorIs(t, c.Close(), net.ErrClosed)
		require.ErrorIs(t, c.SetDeadline(time.Now()), net.ErrClosed)
		require.True(t, c.Closed())
		require.False(t, s.Closed())

		mustRead(t, s, "ab")
		n, err := s.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err, "bare, as sockets return it")
		require.Zero(t, n)
		_, err = s.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestCloseUnblocksARemoteWriterAndARemoteReader(t *testing.T) {
	bubble(t, memnet.Options{ToClient: 2}, func(t *testing.T, c, s *memnet.Conn) {
		w := async(func() (int, error) { return s.Write([]byte("abc")) })
		r := async(func() (int, error) { return s.Read(make([]byte, 1)) })
		pending(t, w)
		pending(t, r)
		require.NoError(t, c.Close())
		got := done(t, w)
		require.Equal(t, 2, got.n)
		require.ErrorIs(t, got.err, syscall.EPIPE)
		require.Equal(t, io.EOF, done(t, r).err)
	})
}

func TestHalfCloseEndsOneDirectionOnly(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		mustWrite(t, c, "last")
		require.NoError(t, c.CloseWrite())
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		mustRead(t, s, "last")
		mustFailRead(t, s, io.EOF)
		mustWrite(t, s, "still answered")
		mustRead(t, c, "still answered")
	})
}

func TestExactWriteIsTrueUntilATestSaysOtherwise(t *testing.T) {
	c, s := memnet.Pipe(memnet.Options{})
	defer func() { _ = c.Close(); _ = s.Close() }()
	require.True(t, c.ExactWrite())
	c.SetExactWrite(false)
	require.False(t, c.ExactWrite())
	require.True(t, s.ExactWrite())
	require.Equal(t, "client", c.LocalAddr().String())
	require.Equal(t, "server", c.RemoteAddr().String())
	require.Equal(t, "mem", c.LocalAddr().Network())
}

func TestRandomTrafficArrivesUnchangedThroughAnyBuffer(t *testing.T) {
	for _, size := range []int{-1, 1, 7, 4096, memnet.DefaultBuffer} {
		for _, delay := range []time.Duration{0, time.Millisecond} {
			bubble(t, memnet.Options{ToServer: size, ToClient: size}, func(t *testing.T, c, s *memnet.Conn) {
				c.Out().Delay(delay)
				var wg sync.WaitGroup
				stream := func(seed uint64, from, to *memnet.Conn) {
					rnd := rand.New(rand.NewPCG(seed, uint64(size)))
					want := make([]byte, 20_000)
					for i := range want {
						want[i] = byte(rnd.Uint32())
					}
					wg.Go(func() {
						rnd := rand.New(rand.NewPCG(seed, 1))
						for left := want; len(left) > 0; {
							n := min(len(left), 1+rnd.IntN(900))
							if m, err := from.Write(left[:n]); err != nil || m != n {
								t.Errorf("write: %d of %d, %v", m, n, err)
								return
							}
							left = left[n:]
						}
						if err := from.CloseWrite(); err != nil {
							t.Error(err)
						}
					})
					wg.Go(func() {
						rnd := rand.New(rand.NewPCG(seed, 2))
						var got []byte
						for {
							buf := make([]byte, 1+rnd.IntN(700))
							n, err := to.Read(buf)
							got = append(got, buf[:n]...)
							if err == io.EOF {
								break
							}
							if err != nil {
								t.Error(err)
								return
							}
						}
						if !bytes.Equal(want, got) {
							t.Errorf("buffer %d: %d bytes of %d, or changed", size, len(got), len(want))
						}
					})
				}
				stream(1, c, s)
				stream(2, s, c)
				wg.Wait()
			})
		}
	}
}

func TestCloseRacingReadsWritesAndFaultsReturnsEveryCall(t *testing.T) {
	for round := range 200 {
		c, s := memnet.Pipe(memnet.Options{ToServer: 3, ToClient: -1})
		var wg sync.WaitGroup
		for _, end := range []*memnet.Conn{c, s} {
			for range 2 {
				wg.Go(func() {
					for {
						if _, err := end.Write([]byte("0123456789")); err != nil {
							return
						}
					}
				})
				wg.Go(func() {
					for {
						if _, err := end.Read(make([]byte, 4)); err != nil {
							return
						}
					}
				})
			}
		}
		wg.Go(func() { c.Freeze(); c.Thaw() })
		wg.Go(func() { _ = s.SetDeadline(time.Now().Add(time.Hour)) })
		switch round % 3 {
		case 0:
			wg.Go(func() { _ = c.Close() })
			wg.Go(func() { _ = s.Close() })
		case 1:
			wg.Go(func() { c.Out().CutAfter(25, memnet.Cut{Reset: true}) })
		case 2:
			wg.Go(func() { _ = s.Reset() })
		}
		wg.Wait()
		_ = c.Close()
		_ = s.Close()
	}
}
