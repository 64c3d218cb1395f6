package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

func TestIdleConnectionsAreReapedWhenTheirTimeComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, IdleTimeout: 10 * time.Second})
		a, b, c := lease(t, p), lease(t, p), lease(t, p)
		time.Sleep(time.Minute)
		require.Equal(t, 3, s.open(), "a leased connection is not idle")
		p.Put(a)
		time.Sleep(4 * time.Second)
		p.Put(b)
		time.Sleep(6*time.Second - time.Nanosecond)
		require.Equal(t, 3, s.open())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 2, s.open())
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, s.open(), "b, with nothing happening in between")
		require.Equal(t, map[pool.Reason]uint64{pool.ReasonIdle: 2}, p.Stats().Removed)
		p.Put(c)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Zero(t, s.open())
		require.Zero(t, p.Stats().Open)
	})
}

func TestUsingAConnectionStartsItsIdleTimeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, IdleTimeout: 10 * time.Second})
		for range 5 {
			p.Put(lease(t, p))
			time.Sleep(9 * time.Second)
		}
		require.Equal(t, 1, s.dials())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, s.open())
	})
}

func TestNoTimerRunsWhileNothingIsIdle(t *testing.T) {
	s := &peer{}
	p := newPool(t, pool.Options{DialFunc: s.dial})
	c := lease(t, p)
	require.True(t, p.ReapTimerStopped())
	p.Put(c)
	c = lease(t, p)
	require.True(t, p.ReapTimerStopped())
	p.Put(c)
	require.False(t, p.ReapTimerStopped())
}

func TestAnOldConnectionIsNotLentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, IdleTimeout: -1, MaxAge: time.Minute})
		a, b := lease(t, p), lease(t, p)
		p.Put(a)
		time.Sleep(time.Minute - time.Nanosecond)
		require.Equal(t, 2, s.open())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 1, s.open(), "idle: reaped")
		p.Put(b)
		require.Zero(t, s.open(), "put: closed")
		require.Equal(t, map[pool.Reason]uint64{pool.ReasonAge: 2}, p.Stats().Removed)
		p.Put(lease(t, p))
		require.Equal(t, 3, s.dials())
	})
}

func TestWithoutLimitsIdleConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, IdleTimeout: -1})
		p.Put(lease(t, p))
		time.Sleep(1000 * time.Hour)
		p.Put(lease(t, p))
		require.Equal(t, 1, s.dials())
	})
}
