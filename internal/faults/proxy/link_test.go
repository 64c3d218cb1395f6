package proxy

import (
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACutIsAFINToBothSidesAndDropsWhatWasHeld(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	l.Freeze(BothWays)
	send(t, c, "held")
	send(t, s, "held")
	silent(t, s)
	silent(t, c)
	require.Equal(t, 1, r.Each((*Link).Cut))
	for _, end := range []net.Conn{c, s} {
		got, err := rest(t, end)
		require.NoError(t, err, "a FIN")
		require.Empty(t, got)
	}
	send(t, c, "swallowed") // the proxy has not closed its half for reading
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	ended(t, l)
	l.Cut()
	l.Freeze(BothWays)
}

func TestACutDoesNotWaitForAPeerThatReadsNothing(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	fill(t, c)
	l.Cut()
	_, err := rest(t, c)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = io.Copy(io.Discard, s)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	ended(t, l)
}

// fill writes until nothing is accepted any more.
func fill(t *testing.T, c *net.TCPConn) (total int) {
	t.Helper()
	b := make([]byte, 1<<20)
	for {
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(4*quiet)))
		n, err := c.Write(b)
		total += n
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, c.SetWriteDeadline(time.Time{}))
			return total
		}
	}
}

func TestAResetOfBothSidesIsSeenAsOneByBoth(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	l.Reset(BothSides)
	for _, end := range []net.Conn{c, s} {
		_, err := rest(t, end)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}
	ended(t, l)
}

func TestAResetOfTheClientLeavesTheServerWithWhatWasHeldForIt(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	l.Freeze(Requests)
	send(t, c, "late request")
	silent(t, s)
	require.Eventually(t, func() bool { return l.lanes[request].kept() > 0 }, patience, time.Millisecond)
	l.Reset(Client)
	_, err := rest(t, c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	silent(t, s)
	l.Thaw(Requests)
	receive(t, s, "late request")
	send(t, s, "an answer for nobody")
	silent(t, s)
	l.HalfClose(Requests)
	_, err = rest(t, s)
	require.NoError(t, err, "a FIN reaches the side that was left")
	require.NoError(t, s.Close())
	ended(t, l)
}

// kept is how many bytes a lane holds.
func (n *lane) kept() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.queued
}

func TestAResetOfTheServerLeavesTheClientWithWhatWasHeldForIt(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	l.Freeze(Replies)
	send(t, s, "late reply")
	require.Eventually(t, func() bool { return l.lanes[reply].kept() > 0 }, patience, time.Millisecond)
	l.Reset(Server)
	_, err := rest(t, s)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	silent(t, c)
	l.Thaw(Replies)
	receive(t, c, "late reply")
	send(t, c, "a request for nobody")
	silent(t, c)
	l.Cut()
	_, err = rest(t, c)
	require.NoError(t, err, "a cut reaches the side that was left")
	require.NoError(t, c.Close())
	ended(t, l)
}

func TestAHalfCloseEndsOneDirectionOnly(t *testing.T) {
	r := newRig(t)
	for _, d := range []Direction{Requests, Replies} {
		c, s, l := r.connect(t)
		from, to := c, s
		if d == Replies {
			from, to = s, c
		}
		send(t, from, "before")
		receive(t, to, "before")
		l.HalfClose(d)
		got, err := rest(t, to)
		require.NoError(t, err)
		require.Empty(t, got)
		send(t, from, "after")
		send(t, to, "the other way")
		receive(t, from, "the other way")
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
		ended(t, l)
	}
}

func TestAFrozenDirectionKeepsBytesAndTheFINUntilItIsThawed(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	l.Freeze(Requests)
	send(t, c, "one")
	send(t, s, "two")
	receive(t, c, "two")
	silent(t, s)
	require.NoError(t, c.CloseWrite())
	silent(t, s)
	l.Thaw(Requests)
	got, err := rest(t, s)
	require.NoError(t, err)
	require.Equal(t, "one", got)
}

func TestAFrozenDirectionFillsTheBuffersOfTheSender(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	l.Freeze(Requests)
	total := fill(t, c)
	require.Zero(t, r.Counts().Requests)
	l.Thaw(BothWays)
	require.NoError(t, c.CloseWrite())
	n, err := io.Copy(io.Discard, s)
	require.NoError(t, err)
	require.EqualValues(t, total, n)
}

func TestADripLetsAFewBytesThroughAtATime(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	const every = 5 * time.Millisecond
	l.Drip(Requests, 2, every)
	start := time.Now()
	send(t, c, "0123456789")
	b := make([]byte, 10)
	n, err := s.Read(b)
	require.NoError(t, err)
	require.LessOrEqual(t, n%2, 0, "%d bytes", n)
	_, err = io.ReadFull(s, b[n:])
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 4*every)
	require.Equal(t, "0123456789", string(b))
	l.Drip(Requests, 1, time.Hour)
	send(t, c, "abc")
	receive(t, s, "a")
	silent(t, s)
	l.Drip(Requests, 0, 0)
	receive(t, s, "bc")
}

func TestADelayHoldsBytesBackButNotTheirNumber(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	const by = 50 * time.Millisecond
	l.Delay(BothWays, by)
	start := time.Now()
	send(t, c, "there")
	receive(t, s, "there")
	require.GreaterOrEqual(t, time.Since(start), by)
	send(t, s, "and back")
	require.NoError(t, s.CloseWrite())
	got, err := rest(t, c)
	require.NoError(t, err)
	require.Equal(t, "and back", got)
	require.GreaterOrEqual(t, time.Since(start), 2*by)

	c, _, l = r.connect(t)
	l.Delay(Requests, time.Hour)
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(patience)))
	n, err := c.Write(make([]byte, 7<<20))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return l.lanes[request].kept() == n }, patience, time.Millisecond)
}

func TestACutAfterNBytesHandsOnExactlyThose(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	for _, n := range []int{0, 1, 9, 32 << 10, 32<<10 + 1, 199_999, 200_000} {
		for _, d := range []Direction{Requests, Replies} {
			r := newRig(t)
			r.OnLink(func(l *Link) { l.CutAfter(d, int64(n)) })
			c := r.dial(t)
			s := accept(t, r.backend)
			from, to := c, s
			if d == Replies {
				from, to = s, c
			}
			fail := make(chan error, 1)
			go func() {
				_, _ = io.WriteString(from, text)
				_, err := io.Copy(io.Discard, from)
				fail <- err
			}()
			got, err := rest(t, to)
			require.NoError(t, err)
			require.Equal(t, text[:n], got)
			require.NoError(t, <-fail, "the sender gets a FIN too")
		}
	}
}

func TestAWriteToAPeerThatIsGoneEndsTheLink(t *testing.T) {
	r := newRig(t)
	c, s, l := r.connect(t)
	require.NoError(t, s.CloseWrite())
	_, err := rest(t, c)
	require.NoError(t, err)
	reset(s) // the proxy has read its FIN and will read no more
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(patience)))
	for err == nil {
		_, err = io.WriteString(c, "x")
	}
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	ended(t, l)
}
