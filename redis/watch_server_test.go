package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// addOne is the usual read, compute and write of a counter.
func addOne(c *Client, key string) error {
	ctx := context.Background()
	return c.Watch(ctx, func(tx *WatchTx) error {
		get := Get(key)
		if err := tx.Do(ctx, get); err != nil {
			return err
		}
		n, err := get.Int64()
		if err != nil && !errors.Is(err, Nil) {
			return err
		}
		return tx.Exec(ctx, Build("SET").Arg(key).ArgInt(n+1))
	}, key)
}

func TestWatchedTransactionsOfManyLoseNoUpdate(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr(), Lent: 4})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				err := ErrTxAborted
				for errors.Is(err, ErrTxAborted) {
					err = addOne(c, "n")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, "200", s.Text("GET", "n"))
	require.LessOrEqual(t, c.Stats().Lent.Dials, uint64(4), "connections are used again")
}

func TestATransactionWhoseKeyChangedIsAborted(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	for _, version := range []int{2, 3} {
		s.Text("FLUSHALL")
		c := connect(t, Options{Addr: s.Addr(), Protocol: version})
		ctx := context.Background()
		mine := Set("k", "mine")
		err := c.Watch(ctx, func(tx *WatchTx) error {
			s.Text("SET", "k", "theirs")
			return tx.Exec(ctx, mine)
		}, "k", "other")
		require.ErrorIs(t, err, ErrTxAborted)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		require.ErrorIs(t, mine.Err(), ErrTxAborted)
		require.Equal(t, "theirs", s.Text("GET", "k"))

		// Without Exec nothing stays watched.
		require.NoError(t, c.Watch(ctx, func(*WatchTx) error { return nil }, "k"))
		s.Text("SET", "k", "again")
		require.NoError(t, c.Watch(ctx, func(tx *WatchTx) error { return tx.Exec(ctx, Set("k", "mine")) }))
		require.Equal(t, "mine", s.Text("GET", "k"))
		require.EqualValues(t, 1, c.Stats().Lent.Dials)

		// A failing function, a failing command, a second Exec.
		boom := errors.New("boom")
		require.Equal(t, boom, c.Watch(ctx, func(*WatchTx) error { return boom }, "k"))
		require.PanicsWithValue(t, "boom", func() { _ = c.Watch(ctx, func(*WatchTx) error { panic("boom") }, "k") })
		var te *TxError
		err = c.Watch(ctx, func(tx *WatchTx) error { return tx.Exec(ctx, LPush("k", "x"), Set("o", "1")) }, "k")
		require.ErrorAs(t, err, &te)
		require.False(t, te.Aborted)
		require.NoError(t, c.Watch(ctx, func(tx *WatchTx) error {
			require.NoError(t, tx.Exec(ctx, Set("k", "v")))
			require.ErrorIs(t, tx.Exec(ctx, Set("k", "w")), errTxDone)
			require.ErrorIs(t, tx.Do(ctx, Get("k")), errTxDone)
			return nil
		}, "k"))
		require.Equal(t, "v", s.Text("GET", "k"))
	}
}

// EXEC on a new connection would run without any watch.
func TestAConnectionLostUnderWatchAbortsAndNothingRunsOnAnotherOne(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	ended := make(endings, 100)
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{Observer: ended}})
	ctx := context.Background()
	for i := range 10 {
		err := c.Watch(ctx, func(tx *WatchTx) error {
			id := NewCmd("CLIENT", "ID")
			require.NoError(t, tx.Do(ctx, id))
			n, err := id.Text()
			require.NoError(t, err)
			s.Text("CLIENT", "KILL", "ID", n)
			<-ended
			if i%2 == 0 {
				require.ErrorIs(t, tx.Do(ctx, Get("k")), ErrSessionLost)
			}
			return tx.Exec(ctx, Set("k", "v"))
		}, "k")
		require.ErrorIs(t, err, ErrTxAborted)
		require.ErrorIs(t, err, ErrSessionLost)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
	}
	require.Empty(t, s.Text("GET", "k"))
}

func TestAnExecOnItsWayWhenTheConnectionDiesIsLeftOpenAndNotRepeated(t *testing.T) {
	so := scripted.Options{
		Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
			switch req.Verb() {
			case "EXEC":
				return scripted.DropAfter()
			case "WATCH", "MULTI":
				return scripted.Reply(ok)
			}
			return scripted.Reply(queued)
		},
	}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		err := r.Watch(ctx, func(tx *WatchTx) error { return tx.Exec(ctx, Set("k", "v")) }, "k")
		requireMaybe(t, err)
		require.NotErrorIs(t, err, ErrTxAborted)
		require.Equal(t, 1, r.server.Conns())
		require.Equal(t, 1, strings.Count(verbs(r.server, 0), "EXEC"))
	})
}

// What discards a transaction also ends its watch: sent again, it would run unwatched.
func TestARefusedTransactionUnderWatchIsNotSentAgain(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	ctx := context.Background()
	err := c.Watch(ctx, func(tx *WatchTx) error {
		s.Text("CONFIG", "SET", "min-replicas-to-write", "1")
		err := tx.Exec(ctx, Set("k", "v"))
		s.Text("CONFIG", "SET", "min-replicas-to-write", "0")
		return err
	}, "k")
	var te *TxError
	require.ErrorAs(t, err, &te)
	require.True(t, te.Aborted)
	require.Equal(t, "NOREPLICAS", codeOf(err))
	require.Empty(t, s.Text("GET", "k"))
	require.Contains(t, s.Text("INFO", "commandstats"), fmt.Sprintf("cmdstat_exec:calls=%d,", 1))
	l, err := c.Lend(ctx)
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, l.Do(ctx, split("WATCH k")))
	s.Text("SET", "k", "theirs")
	require.ErrorIs(t, l.Do(ctx, NewTx(Set("k", "mine"))), ErrTxAborted)
}
