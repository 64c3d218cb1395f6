package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// confirm is the answer to a request of the SUBSCRIBE family.
func confirm(version int, req scripted.Request) string {
	frame := fmt.Sprintf(">3\r\n%s%s:1\r\n", bulkOf(strings.ToLower(req.Verb())), bulkOf(req.Token()))
	if version == 2 {
		return "*" + frame[1:]
	}
	return frame
}

func bulkOf(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func messageOf(version int, words ...string) []byte {
	frame := scripted.PushFrame(words...)
	if version == 2 {
		frame[0] = '*'
	}
	return frame
}

// Covers: E-30
func TestMessagesAreToldFromConfirmationsWhereverTheyCome(t *testing.T) {
	for _, version := range []int{2, 3} {
		so := scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
			a := scripted.Reply(confirm(version, req))
			a.PushBefore = messageOf(version, "message", "a", fmt.Sprintf("before %s on %d", req.Token(), c.Index()))
			a.PushAfter = messageOf(version, "pmessage", "p", "b", fmt.Sprintf("after %s on %d", req.Token(), c.Index()))
			return a
		}}
		bubble(t, so, Options{Protocol: version}, func(t *testing.T, r *rig) {
			sub, err := r.Subscribe(context.Background(), "x")
			require.NoError(t, err)
			require.NoError(t, sub.PSubscribe(context.Background(), "y"))
			synctest.Wait()
			require.Equal(t, []string{"before x on 0", "after x on 0", "before y on 0", "after y on 0"}, received(t, sub.box, 4))

			// The gap begins when the server was last heard, and ends when it has confirmed everything again.
			heard := time.Now()
			time.Sleep(7 * time.Second)
			r.server.CloseConns()
			m, err := sub.Receive(context.Background())
			require.NoError(t, err)
			require.NotNil(t, m.Missed)
			require.Equal(t, heard, m.Missed.From)
			require.Equal(t, time.Now(), m.Missed.To)
			require.GreaterOrEqual(t, m.Missed.To.Sub(heard), 7*time.Second)
			require.Less(t, m.Missed.To.Sub(heard), 9*time.Second)
			got := received(t, sub.box, 4)
			require.ElementsMatch(t, []string{"before x on 1", "after x on 1", "before y on 1", "after y on 1"}, got)
			require.Equal(t, 2, r.server.Conns())
			require.Equal(t, setUpVerbs(version)+" SUBSCRIBE", subscribeVerbs(r.server, 1))
			require.NoError(t, sub.Close())
			<-sub.Done()
		})
	}
}

func setUpVerbs(version int) string {
	if version == 2 {
		return "CLIENT CLIENT PING"
	}
	return "HELLO CLIENT CLIENT PING"
}

// subscribeVerbs is verbs up to the first of the SUBSCRIBE family, with whichever it is named SUBSCRIBE.
func subscribeVerbs(s *scripted.Server, i int) string {
	before, _, _ := strings.Cut(strings.ReplaceAll(verbs(s, i), "PSUBSCRIBE", "SUBSCRIBE"), " SUBSCRIBE")
	return before + " SUBSCRIBE"
}

// A shard's channel that moves away is announced in the form of a confirmation that nobody waits for.
func TestAConfirmationOfSomethingElseMakesASubscriptionStartAgain(t *testing.T) {
	so := scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token() == "moving" && c.Index() == 0 {
			return scripted.Reply(">3\r\n" + bulkOf("sunsubscribe") + bulkOf("x") + ":0\r\n")
		}
		return scripted.Reply(confirm(3, req))
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		sub, err := r.SSubscribe(context.Background(), "x")
		require.NoError(t, err)
		require.Error(t, sub.SSubscribe(context.Background(), "moving"), "its answer was another's")
		m, err := sub.Receive(context.Background())
		require.NoError(t, err)
		require.NotNil(t, m.Missed)
		require.Equal(t, 2, r.server.Conns())
		r.server.Conn(1).Push([]byte(">3\r\n" + bulkOf("sunsubscribe") + bulkOf("x") + ":0\r\n"))
		m, err = sub.Receive(context.Background())
		require.NoError(t, err)
		require.NotNil(t, m.Missed, "also when nothing is asked")
		require.NoError(t, sub.Close())
		<-sub.Done()
	})
}

func TestOtherPushesOfASubscriptionGoToTheHandlerAndItsSessionsToTheObserver(t *testing.T) {
	so := scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		a := scripted.Reply(confirm(3, req))
		a.PushAfter = append(messageOf(3, "invalidate", "k", "x"), ">3\r\n$7\r\nmessage\r\n+c\r\n_\r\n"...)
		return a
	}}
	var pushes []string
	ended := make(endings, 10)
	o := Options{OnPush: func(frame []byte) { pushes = append(pushes, string(frame)) }, Engine: fdengine.Options{Observer: ended}}
	bubble(t, so, o, func(t *testing.T, r *rig) {
		sub, err := r.Subscribe(context.Background(), "x")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{string(messageOf(3, "invalidate", "k", "x"))}, pushes)
		require.Equal(t, []string{"dropped 1"}, received(t, sub.box, 1), "a message that cannot be read is missing")
		require.NoError(t, sub.Close())
		<-sub.Done()
		<-ended
	})
}

// A connection that is dead without saying so is found by the heartbeat.
func TestASilentServerIsNoticedWhileNothingIsPublished(t *testing.T) {
	so := scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		return scripted.Reply(confirm(3, req))
	}, OnHandshake: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if c.Index() == 0 && req.Verb() == "PING" && req.Seq >= 5 {
			return scripted.Stall()
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		sub, err := r.Subscribe(context.Background(), "x")
		require.NoError(t, err)
		start := time.Now()
		m, err := sub.Receive(context.Background())
		require.NoError(t, err)
		require.NotNil(t, m.Missed)
		require.Less(t, time.Since(start), time.Minute)
		require.GreaterOrEqual(t, m.Missed.To.Sub(m.Missed.From), 5*time.Second)
		require.NoError(t, sub.Close())
		<-sub.Done()
	})
}
