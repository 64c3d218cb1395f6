package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// next is the next thing that a subscription receives.
func next(t *testing.T, s *Subscription) Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	m, err := s.Receive(ctx)
	require.NoError(t, err)
	return m
}

func TestSubscriptionsOfEachFormReceiveInBothVersionsOfTheProtocol(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	ctx := context.Background()
	for _, version := range []int{2, 3} {
		c := connect(t, Options{Addr: s.Addr(), Protocol: version})
		sub, err := c.SubscribeTo(ctx, SubscribeOptions{Channels: []string{"a", "b"}, Patterns: []string{"p*"}, ShardChannels: []string{"s"}})
		require.NoError(t, err)
		do(t, c, Publish("a", "one"))
		do(t, c, Publish("px", []byte("two")))
		do(t, c, NewCmd("SPUBLISH", "s", "three"))
		do(t, c, Publish("b", ""))
		require.Equal(t, Message{Channel: "a", Payload: []byte("one")}, next(t, sub))
		require.Equal(t, Message{Channel: "px", Pattern: "p*", Payload: []byte("two")}, next(t, sub))
		require.Equal(t, Message{Channel: "s", Payload: []byte("three")}, next(t, sub))
		require.Equal(t, Message{Channel: "b", Payload: []byte{}}, next(t, sub))

		require.NoError(t, sub.Subscribe(ctx, "c", "a"))
		require.NoError(t, sub.PSubscribe(ctx, "q?"))
		require.NoError(t, sub.SSubscribe(ctx, "t"))
		require.NoError(t, sub.Ping(ctx))
		require.NoError(t, sub.Unsubscribe(ctx, "a", "never"))
		require.NoError(t, sub.PUnsubscribe(ctx, "p*"))
		require.NoError(t, sub.SUnsubscribe(ctx, "s"))
		require.NoError(t, sub.Subscribe(ctx))
		require.Equal(t, "[a 0 b 1 c 1]", s.Text("PUBSUB", "NUMSUB", "a", "b", "c"))
		require.Equal(t, "1", s.Text("PUBSUB", "NUMPAT"))
		require.Equal(t, "[t]", s.Text("PUBSUB", "SHARDCHANNELS"))
		do(t, c, Publish("c", "four"))
		require.Equal(t, "four", string(next(t, sub).Payload))

		require.NoError(t, sub.Unsubscribe(ctx, "b", "c"))
		require.NoError(t, sub.PUnsubscribe(ctx, "q?"))
		require.NoError(t, sub.SUnsubscribe(ctx, "t"))
		require.NoError(t, sub.Ping(ctx), "also when nothing is subscribed to")
		require.NoError(t, sub.Subscribe(ctx, "z"))
		do(t, c, Publish("z", "five"))
		require.Equal(t, "five", string(next(t, sub).Payload))
		require.NoError(t, sub.Err())
		require.NoError(t, sub.Close())
		<-sub.Done()
		require.ErrorIs(t, sub.Err(), fdengine.ErrClosed)
		require.Zero(t, c.Stats().Lent.Dials)
	}
}

func TestALostSubscriptionIsRestoredAndSaysForHowLongItHeardNothing(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	ctx := context.Background()
	for _, version := range []int{2, 3} {
		c := connect(t, Options{Addr: s.Addr(), Protocol: version})
		var many []string
		for i := range 1000 {
			many = append(many, fmt.Sprintf("many%d", i))
		}
		sub, err := c.SubscribeTo(ctx, SubscribeOptions{Channels: many, Patterns: []string{"p*"}, ShardChannels: []string{"s"}})
		require.NoError(t, err)
		for round := range 3 {
			before := time.Now()
			if round == 0 {
				s.Restart()
			} else {
				s.Text("CLIENT", "KILL", "TYPE", "pubsub")
			}
			m := next(t, sub)
			require.NotNil(t, m.Missed)
			require.Zero(t, m.Missed.Dropped)
			require.WithinRange(t, m.Missed.From, before.Add(-30*time.Second), m.Missed.To)
			require.WithinRange(t, m.Missed.To, before, time.Now())
			require.Error(t, m.Missed.Cause)
			do(t, c, Publish("many999", "x"))
			do(t, c, Publish("px", "y"))
			do(t, c, NewCmd("SPUBLISH", "s", "z"))
			require.Equal(t, "x", string(next(t, sub).Payload))
			require.Equal(t, "y", string(next(t, sub).Payload))
			require.Equal(t, "z", string(next(t, sub).Payload))
		}
		require.NoError(t, sub.Close())
		<-sub.Done()
	}
}

func TestASlowReceiverLosesMessagesAndIsToldOrHoldsTheServerUp(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	ctx := context.Background()
	drops, err := c.SubscribeTo(ctx, SubscribeOptions{Channels: []string{"c"}, Buffer: 10})
	require.NoError(t, err)
	waits, err := c.SubscribeTo(ctx, SubscribeOptions{Channels: []string{"c"}, Buffer: 10, Block: true})
	require.NoError(t, err)
	const n = 300
	for i := range n {
		do(t, c, Publish("c", fmt.Sprint(i)))
	}
	require.NoError(t, drops.Ping(ctx), "everything before it has arrived")
	for i := range 10 {
		require.Equal(t, fmt.Sprint(i), string(next(t, drops).Payload))
	}
	require.Equal(t, Message{Missed: &Missed{Dropped: n - 10}}, next(t, drops))
	for i := range n {
		require.Equal(t, fmt.Sprint(i), string(next(t, waits).Payload))
	}
	for i := range n {
		do(t, c, Publish("c", fmt.Sprint(i)))
	}
	require.NoError(t, waits.Close(), "with a blocked reader")
	<-waits.Done()
	_, err = c.SubscribeTo(ctx, SubscribeOptions{Buffer: -1})
	require.ErrorContains(t, err, "-1")
}

func TestTheChannelOfASubscriptionEndsWithIt(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	ctx := context.Background()
	sub, err := c.Subscribe(ctx, "c")
	require.NoError(t, err)
	all := sub.Channel()
	require.Equal(t, all, sub.Channel())
	do(t, c, Publish("c", "x"))
	m := <-all
	require.Equal(t, "x", string(m.Payload))
	do(t, c, Publish("c", "nobody reads this one"))
	require.NoError(t, sub.Ping(ctx))
	require.NoError(t, c.Close(), "the client takes its subscriptions along")
	<-c.Done()
	for range all { //nolint:revive // it ends
	}
	_, err = c.Subscribe(ctx, "c")
	require.ErrorIs(t, err, fdengine.ErrClosed)
	require.ErrorIs(t, sub.Subscribe(ctx, "d"), fdengine.ErrClosed)
	for {
		if _, err = sub.Receive(ctx); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, fdengine.ErrClosed)

	c = connect(t, Options{Addr: s.Addr()})
	sub, err = c.PSubscribe(ctx, "c*")
	require.NoError(t, err)
	_, err = c.Shutdown(ctx)
	require.NoError(t, err)
	<-sub.Done()
	_, open := <-sub.Channel()
	require.False(t, open, "also when it is asked for afterwards")
}

func TestARefusedChannelCostsNothingElse(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	s.Text("ACL", "SETUSER", "worker", "on", ">pw", "~*", "resetchannels", "&good*", "+@all")
	c := connect(t, Options{Addr: s.Addr(), Username: "worker", Password: "pw"})
	ctx := context.Background()
	_, err := c.Subscribe(ctx, "good", "bad")
	require.Equal(t, "NOPERM", codeOf(err))
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
	sub, err := c.SSubscribe(ctx, "good")
	require.NoError(t, err)
	require.Equal(t, "NOPERM", codeOf(sub.Subscribe(ctx, "good1", "bad", "good2")))
	require.NoError(t, sub.Ping(ctx))
	require.Equal(t, "[good1 0 bad 0 good2 0]", s.Text("PUBSUB", "NUMSUB", "good1", "bad", "good2"), "all or nothing")
	require.NoError(t, sub.Subscribe(ctx, "good1"))
	do(t, c, Publish("good1", "x"))
	require.Equal(t, "x", string(next(t, sub).Payload))

	// A subscription for which no connection can be had any more ends and says why.
	s.Text("ACL", "SETUSER", "worker", "resetpass", ">other")
	s.Text("CLIENT", "KILL", "TYPE", "pubsub")
	_, err = sub.Receive(ctx)
	require.Equal(t, "WRONGPASS", codeOf(err))
	require.Equal(t, err, sub.Err())
	<-sub.Done()
}

func TestASubscriptionThatCannotBeMadeIsGivenUpWithItsContext(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	s.Kill9()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Subscribe(ctx, "c")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, carry.NotSent, fdengine.FateOf(err))
	require.False(t, errors.Is(err, ErrNotShared) || strings.Contains(err.Error(), "panic"))
}
