package pool_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/panics"
	"github.com/fdengine/fullduplex/pool"
)

// moody is a connection of somebody else's making, which is no socket, so that it is examined by a read.
type moody struct {
	net.Conn
	read        func([]byte) (int, error)
	closing     func() error
	deadline    func(time.Time) error
	setDeadline func(time.Time) error
}

func (m *moody) Read(b []byte) (int, error) {
	if m.read != nil {
		return m.read(b)
	}
	return m.Conn.Read(b)
}

func (m *moody) Close() error {
	if m.closing != nil {
		defer func() { _ = m.Conn.Close() }()
		return m.closing()
	}
	return m.Conn.Close()
}

func (m *moody) SetReadDeadline(t time.Time) error {
	if m.deadline != nil {
		return m.deadline(t)
	}
	return m.Conn.SetReadDeadline(t)
}

func (m *moody) SetDeadline(t time.Time) error {
	if m.setDeadline != nil {
		return m.setDeadline(t)
	}
	return m.Conn.SetDeadline(t)
}

// moodyPool is a pool whose first connection is m; later ones are plain.
func moodyPool(t *testing.T, s *peer, m *moody, o pool.Options) *pool.Pool {
	o.DialFunc = func(ctx context.Context, n, a string) (net.Conn, error) {
		c, err := s.dial(ctx, n, a)
		if err != nil || m.Conn != nil {
			return c, err
		}
		m.Conn = c
		return m, nil
	}
	return newPool(t, o)
}

// A connection that a DialFunc made panicked in its Close or in the setting of a deadline. The engine calls both on
// its own goroutines, outside of all borders: the program ended.
//
// Covers: S4-14
func TestAConnectionWhoseCloseOrDeadlinePanicsIsClosedAllTheSame(t *testing.T) {
	for name, deed := range map[string]func() error{
		"panic":  func() error { panic(errBoom) },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run("Close "+name, func(t *testing.T) {
			s, m := &peer{}, &moody{closing: deed}
			p := moodyPool(t, s, m, pool.Options{Size: 1})
			c := lease(t, p)
			var pe *panics.Error
			require.ErrorAs(t, c.Abort(), &pe)
			require.Equal(t, "conn.Close", pe.Boundary)
			p.Remove(c, nil)
			require.Zero(t, s.open())
			p.Put(lease(t, p))
			require.Equal(t, 1, p.Stats().Open)
		})
	}
	t.Run("deadline", func(t *testing.T) {
		s := &peer{}
		fall := func(time.Time) error { panic(errBoom) }
		m := &moody{deadline: fall}
		p := moodyPool(t, s, m, pool.Options{Size: 1})
		c := lease(t, p)
		require.NoError(t, c.SetWriteDeadline(time.Time{}))
		m.setDeadline = fall
		for _, set := range []func(time.Time) error{c.SetReadDeadline, c.SetDeadline} {
			require.ErrorIs(t, set(time.Time{}), errBoom)
		}
		require.Zero(t, s.open(), "nobody waits for a deadline that was not set")
		p.Put(c)
		require.Equal(t, map[pool.Reason]uint64{pool.ReasonPanic: 1}, p.Stats().Removed)
		require.Zero(t, p.Stats().Open)
	})
}

// Covers: S4-14
func TestAnIdleConnectionThatCannotBeExaminedIsNotLent(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(m *moody)
		reason pool.Reason
	}{
		"its deadline cannot be set": {func(m *moody) { m.deadline = func(time.Time) error { return errBoom } }, pool.ReasonOther},
		"it reads nothing":           {func(m *moody) { m.read = func([]byte) (int, error) { return 0, nil } }, pool.ReasonStray},
		"its read fails":             {func(m *moody) { m.read = func([]byte) (int, error) { return 0, errBoom } }, pool.ReasonOther},
		"its read panics":            {func(m *moody) { m.read = func([]byte) (int, error) { panic(errBoom) } }, pool.ReasonPanic},
		"it is at its end":           {func(m *moody) { m.read = func([]byte) (int, error) { return 0, io.EOF } }, pool.ReasonPeerClosed},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := &peer{}, &moody{}
			p := moodyPool(t, s, m, pool.Options{Size: 1})
			first := lease(t, p)
			p.Put(first)
			c.spoil(m)
			next := lease(t, p)
			require.NotSame(t, first.Conn, next.Conn)
			require.Equal(t, map[pool.Reason]uint64{c.reason: 1}, p.Stats().Removed)
			require.Equal(t, 1, s.open())
			p.Put(next)
			require.Equal(t, 1, p.Stats().Open)
		})
	}
}

// The pool is closed while one of its connections is being examined, put, or given back after its waiter left.
func TestACloseWhileAConnectionIsBetweenTwoHandsClosesIt(t *testing.T) {
	for name, read := range map[string]func() (int, error){
		"alive": func() (int, error) { return 0, errTimeout{} },
		"dead":  func() (int, error) { return 0, io.EOF },
	} {
		for _, how := range []string{"Lease", "TryLease"} {
			t.Run(how+" "+name, func(t *testing.T) {
				s, m := &peer{}, &moody{}
				p := moodyPool(t, s, m, pool.Options{})
				c := lease(t, p)
				p.Put(c)
				m.read = func([]byte) (int, error) { _ = p.Close(); return read() }
				if how == "Lease" {
					_, err := p.Lease(context.Background())
					require.ErrorIs(t, err, pool.ErrClosed)
				} else {
					_, ok := p.TryLease()
					require.False(t, ok)
				}
				<-p.Done()
				require.Zero(t, s.open())
				require.Zero(t, p.Stats().Open)
			})
		}
	}
	t.Run("Put", func(t *testing.T) {
		s, m := &peer{}, &moody{setDeadline: func(time.Time) error { return nil }, closing: func() error { return nil }}
		var p *pool.Pool
		p = moodyPool(t, s, m, pool.Options{OnPut: func(*pool.Conn) error { return p.Close() }})
		p.Put(lease(t, p))
		<-p.Done()
		require.Zero(t, s.open())
		require.Zero(t, p.Stats().Open)
		require.Equal(t, map[pool.Reason]uint64{pool.ReasonClosed: 1}, p.Stats().Removed)
	})
}

// errTimeout is what a read returns whose deadline has passed.
type errTimeout struct{}

func (errTimeout) Error() string        { return "deadline" }
func (errTimeout) Is(target error) bool { return target.Error() == "i/o timeout" }
