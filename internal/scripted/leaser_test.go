package scripted_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

func (r rig) leaser() *scripted.Leaser {
	return scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) { return r.net.Dial(ctx, "tcp", "s:1") })
}

func TestALeaseHasAnsweredOneRoundTripAndIsLentAgainAfterPut(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		l := r.leaser()
		defer l.Close()
		put := 0
		l.OnPut = func(*pool.Conn) { put++ }
		a, err := l.Lease(t.Context())
		require.NoError(t, err)
		require.True(t, a.ExactWrite())
		require.Equal(t, [][]string{{"PING"}}, r.ConnLog(0))
		require.Empty(t, a.Unread)
		require.NoError(t, a.SetDeadline(time.Now()))
		require.Error(t, l.Check(), "still on loan")
		l.Put(a)
		b, err := l.Lease(t.Context())
		require.NoError(t, err)
		require.Same(t, a, b)
		send(t, b, "ECHO x")
		expect(t, b, "$1\r\nx\r\n")
		boom := errors.New("boom")
		l.Remove(b, boom)
		synctest.Wait()
		require.Zero(t, r.OpenConns())
		require.Equal(t, []error{boom}, l.Reasons())
		require.Equal(t, 1, put)
		require.NoError(t, l.Check())
		require.Equal(t, scripted.Counts{Leases: 2, Granted: 2, Dials: 1, Puts: 1, Removes: 1}, l.Counts())
		l.Put(b)
		l.Remove(b, nil)
		require.ErrorContains(t, l.Check(), "not on loan")
	})
}

func TestALeaseFailsByScriptByDialAndByARefusedPing(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		l := r.leaser()
		boom := pool.Permanent(errors.New("boom"))
		l.OnLease = func(n int) error {
			if n == 1 {
				return boom
			}
			return nil
		}
		_, err := l.Lease(t.Context())
		require.ErrorIs(t, err, boom)
		require.True(t, pool.IsPermanent(err))
		r.RefuseAll("LOADING soon")
		_, err = l.Lease(t.Context())
		var se *scripted.ServerError
		require.ErrorAs(t, err, &se)
		require.Equal(t, "LOADING soon", se.Line)
		var de *pool.DialError
		require.ErrorAs(t, err, &de)
		require.Equal(t, pool.PhaseHandshake, de.Phase)
		r.RefuseAll("")
		r.net.OnDial = func(int, *memnet.Conn, *memnet.Conn) error { return syscall.ECONNREFUSED }
		_, err = l.Lease(t.Context())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorAs(t, err, &de)
		require.Equal(t, pool.PhaseConnect, de.Phase)
		l.Close()
		_, err = l.Lease(t.Context())
		require.ErrorIs(t, err, pool.ErrClosed)
		require.NoError(t, l.Check())
		require.Equal(t, scripted.Counts{Leases: 4, Dials: 2}, l.Counts())
		require.Zero(t, r.net.Open())
	})
}

func TestALeaseFromASilentServerEndsWithItsContext(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		r.FreezeExec(true)
		l := r.leaser()
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Lease(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, r.net.Open())
	})
}

func TestBytesBehindThePongAreHandedOn(t *testing.T) {
	o := scripted.Options{Handshake: map[string]string{"PING": "+PONG\r\n>1\r\n+hi\r\n"}}
	inBubble(t, o, func(t *testing.T, r rig) {
		l := r.leaser()
		c, err := l.Lease(t.Context())
		require.NoError(t, err)
		require.Equal(t, ">1\r\n+hi\r\n", string(c.Unread))
		l.Close()
		l.Put(c)
		require.Zero(t, r.net.Open(), "put after Close closes")
	})
}
