package memnet_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/memnet"
)

func TestACutAtAByteCountsExactlyWhatWasAccepted(t *testing.T) {
	for _, tc := range []struct {
		name      string
		how       memnet.Cut
		delivered string
		readErr   error
		writeErr  error
	}{
		{"close, delivered", memnet.Cut{}, "abc", io.EOF, syscall.EPIPE},
		{"close, dropped", memnet.Cut{Drop: true}, "", io.EOF, syscall.EPIPE},
		{"reset, delivered", memnet.Cut{Reset: true}, "abc", syscall.ECONNRESET, syscall.ECONNRESET},
		{"reset, dropped", memnet.Cut{Reset: true, Drop: true}, "", syscall.ECONNRESET, syscall.ECONNRESET},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
				c.Out().CutAt(3, tc.how)
				mustWrite(t, c, "a")
				n, err := c.Write([]byte("bcde"))
				require.Equal(t, 2, n)
				require.ErrorIs(t, err, tc.writeErr)
				require.EqualValues(t, 3, c.Out().Accepted())
				mustRead(t, s, tc.delivered)
				mustFailRead(t, s, tc.readErr)
				mustFailRead(t, c, tc.readErr)
				_, err = s.Write([]byte("x"))
				require.ErrorIs(t, err, tc.writeErr)
			})
		})
	}
}

func TestACutBehindTheLastByteLetsThatWriteSucceed(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		c.Out().CutAt(3, memnet.Cut{})
		mustWrite(t, c, "abc")
		_, err := c.Write([]byte("d"))
		require.ErrorIs(t, err, syscall.EPIPE)
		mustRead(t, s, "abc")
		mustFailRead(t, s, io.EOF)
	})
}

func TestACutOfOneDirectionDeliversOrDropsTheOtherToo(t *testing.T) {
	for _, drop := range []bool{false, true} {
		bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
			mustWrite(t, s, "reply")
			c.Out().CutAfter(1, memnet.Cut{Drop: drop})
			mustWrite(t, c, "x")
			if !drop {
				mustRead(t, c, "reply")
			}
			mustFailRead(t, c, io.EOF)
		})
	}
}

func TestACutWakesBlockedReadersAndWriters(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 2}, func(t *testing.T, c, s *memnet.Conn) {
		w := async(func() (int, error) { return c.Write([]byte("abc")) })
		r := async(func() (int, error) { return c.Read(make([]byte, 1)) })
		pending(t, w)
		pending(t, r)
		c.In().CutAfter(0, memnet.Cut{Reset: true})
		got := done(t, w)
		require.Equal(t, 2, got.n)
		require.ErrorIs(t, got.err, syscall.ECONNRESET)
		require.ErrorIs(t, done(t, r).err, syscall.ECONNRESET)
	})
}

func TestADisarmedCutDoesNothing(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		c.Out().CutAt(2, memnet.Cut{})
		c.Out().CutAt(-1, memnet.Cut{})
		mustWrite(t, c, "abc")
		mustRead(t, s, "abc")
	})
}

func TestACutArmedAtAPassedOffsetFiresAtOnce(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		mustWrite(t, c, "abc")
		c.Out().CutAt(2, memnet.Cut{})
		mustRead(t, s, "abc")
		mustFailRead(t, s, io.EOF)
	})
}

func TestAStallHoldsBytesFromItsOffsetAndThawLetsThemThrough(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 6}, func(t *testing.T, c, s *memnet.Conn) {
		c.Out().StallAt(2)
		w := async(func() (int, error) { return c.Write([]byte("abcdefghi")) })
		pending(t, w)
		mustRead(t, s, "ab")
		r := async(func() (int, error) { return s.Read(make([]byte, 1)) })
		pending(t, r)
		pending(t, w)
		require.EqualValues(t, 8, c.Out().Accepted(), "accepted while there is room")
		c.Thaw()
		require.Equal(t, result{1, nil}, done(t, r))
		mustRead(t, s, "defghi")
		require.Equal(t, result{9, nil}, done(t, w))
	})
}

func TestAFrozenConnectionHidesACloseUntilThawed(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 4}, func(t *testing.T, c, s *memnet.Conn) {
		mustWrite(t, s, "buffered")
		c.Freeze()
		require.NoError(t, s.Close())
		r := async(func() (int, error) { return io.ReadFull(c, make([]byte, 9)) })
		w := async(func() (int, error) { return c.Write([]byte("lost?")) })
		pending(t, r)
		pending(t, w)
		require.EqualValues(t, 4, c.Out().Accepted(), "a half-open peer: accepted, never read")
		c.Thaw()
		require.Equal(t, result{8, io.ErrUnexpectedEOF}, done(t, r))
		require.ErrorIs(t, done(t, w).err, syscall.EPIPE)
	})
}

func TestACutBreaksThroughAStallAndLosesWhatItHeld(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		c.In().StallAt(3)
		mustWrite(t, s, "abcdef")
		c.In().CutAfter(0, memnet.Cut{})
		mustRead(t, c, "abc")
		mustFailRead(t, c, io.EOF)
	})
}

func TestABlackHoleAcceptsWithoutLimitAndDeliversNothing(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 4}, func(t *testing.T, c, s *memnet.Conn) {
		c.Out().SwallowAt(3)
		mustWrite(t, c, "abcdefghijklmnopqrstuvwxyz")
		require.EqualValues(t, 26, c.Out().Accepted())
		mustRead(t, s, "abc")
		r := async(func() (int, error) { return s.Read(make([]byte, 1)) })
		pending(t, r)
	})
}

func TestShortWritesAcceptAtMostNAndFail(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		boom := errors.New("boom")
		c.Out().ShortWrites(2, boom)
		n, err := c.Write([]byte("abcdef"))
		require.Equal(t, 2, n)
		require.ErrorIs(t, err, boom)
		mustWrite(t, c, "cd")
		c.Out().ShortWrites(0, boom)
		n, err = c.Write([]byte("x"))
		require.Zero(t, n)
		require.ErrorIs(t, err, boom)
		c.Out().ShortWrites(0, nil)
		mustWrite(t, c, "efghi")
		mustRead(t, s, "abcdefghi")
	})
}

func TestAResetLosesEverythingAndBreaksThroughAFreeze(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		mustWrite(t, s, "lost")
		c.Freeze()
		r := async(func() (int, error) { return c.Read(make([]byte, 1)) })
		pending(t, r)
		require.NoError(t, s.Reset())
		require.ErrorIs(t, done(t, r).err, syscall.ECONNRESET)
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		mustFailRead(t, s, net.ErrClosed)
		require.ErrorIs(t, s.Reset(), net.ErrClosed)
	})
}

func TestDelayedChunksArriveAfterTheirDelayAndInOrder(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		start := time.Now()
		c.Out().Delay(100 * time.Millisecond)
		mustWrite(t, c, "ab")
		time.Sleep(50 * time.Millisecond)
		mustWrite(t, c, "cd")
		c.Out().Delay(0)
		mustWrite(t, c, "ef") // behind the others although not delayed itself
		require.NoError(t, c.Close())
		mustRead(t, s, "ab")
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		mustRead(t, s, "cdef")
		require.Equal(t, 150*time.Millisecond, time.Since(start))
		mustFailRead(t, s, io.EOF)
		require.Equal(t, 150*time.Millisecond, time.Since(start))
	})
}

func TestADelayedCloseIsNoticedByTheWriterOnlyWhenItArrives(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		s.Out().Delay(time.Second)
		require.NoError(t, s.Close())
		mustWrite(t, c, "accepted and lost")
		time.Sleep(time.Second)
		synctest.Wait()
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestADripDeliversOneBytePerInterval(t *testing.T) {
	bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
		mustWrite(t, c, "x")
		mustRead(t, s, "x")
		c.Out().Drip(time.Second)
		mustWrite(t, c, "abcd")
		require.NoError(t, c.CloseWrite())
		buf := make([]byte, 10)
		n, err := s.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "a", string(buf[:n]), "one byte, though four are buffered")
		start := time.Now()
		mustRead(t, s, "bc")
		require.Equal(t, 2*time.Second, time.Since(start))
		c.Out().Drip(0)
		mustRead(t, s, "d")
		require.Equal(t, 2*time.Second, time.Since(start))
		mustFailRead(t, s, io.EOF)
	})
}

func TestACutUnderDelayStillDeliversWhatIsOnItsWayUnlessDropped(t *testing.T) {
	for _, drop := range []bool{false, true} {
		bubble(t, memnet.Options{}, func(t *testing.T, c, s *memnet.Conn) {
			start := time.Now()
			c.Out().Delay(time.Second)
			c.Out().CutAt(2, memnet.Cut{Drop: drop})
			_, err := c.Write([]byte("abc"))
			require.ErrorIs(t, err, syscall.EPIPE)
			if drop {
				mustFailRead(t, s, io.EOF)
				require.Zero(t, time.Since(start))
				return
			}
			mustRead(t, s, "ab")
			mustFailRead(t, s, io.EOF)
			require.Equal(t, time.Second, time.Since(start))
		})
	}
}

func TestABufferCanGrowWhileAWriterWaits(t *testing.T) {
	bubble(t, memnet.Options{ToServer: 1}, func(t *testing.T, c, s *memnet.Conn) {
		w := async(func() (int, error) { return c.Write([]byte("abc")) })
		pending(t, w)
		c.Out().SetBuffer(3)
		require.Equal(t, result{3, nil}, done(t, w))
	})
}
