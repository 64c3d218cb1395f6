package hostile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// unasked lets a peer say something that nobody asked for, and requires that no command takes it for its answer and
// that the connection is not used again.
func unasked(t *testing.T, k kit, p *peer, provoke func(v *visit)) {
	synctest.Test(t, func(t *testing.T) {
		network := new(memnet.Network)
		l, err := network.Listen("server:1")
		require.NoError(t, err)
		p.honest = k.honest()
		p.serve(l)
		c, err := k.open(network, false, fdengine.Options{})
		require.NoError(t, err)
		defer func() {
			_ = c.Close()
			<-c.Done()
			p.wait(l)
		}()
		if p.ready == nil {
			first := k.call("first", false, 0)
			require.NoError(t, c.Do(context.Background(), first.cmd))
			require.NoError(t, first.own())
			synctest.Wait()
			if provoke != nil {
				p.mu.Lock()
				v := p.mu.visits[0]
				p.mu.Unlock()
				provoke(v)
				synctest.Wait()
			}
			require.Equal(t, uint64(1), c.Engine().Stats().Cuts, "seen before the next command comes")
		}
		for _, token := range []string{"next", "another"} {
			x := k.call(token, false, 0)
			require.NoError(t, c.Do(context.Background(), x.cmd))
			require.NoError(t, x.own())
		}
		require.Equal(t, 2, network.Dials())
		require.Equal(t, 1, network.Open())
		p.mu.Lock()
		ran := p.mu.ran["next"]
		p.mu.Unlock()
		require.Equal(t, 1, ran)
		tally.Scenario(1)
		tally.Cut(1)
	})
}

// surplus is what a server may say without being asked, as an answer to the first connection's last command.
func surplus(k kit) map[string]string {
	if k.name == "redis" {
		return map[string]string{
			"a reply": "$4\r\nnext\r\n", "an error": "-ERR late\r\n", "two replies": "+OK\r\n+OK\r\n", "half of one": "$9\r\nne", "rubbish": "\r\n",
			"behind a push": ">1\r\n+news\r\n$4\r\nnext\r\n", "an announcement": "$536000000\r\n", "a retiring refusal": "-READONLY no\r\n",
		}
	}
	return map[string]string{
		"a reply": "INSERTED 7\r\n", "a refusal": "DRAINING\r\n", "two replies": "INSERTED 1\r\nINSERTED 2\r\n", "half of one": "INSER",
		"rubbish": "\r\n", "a job": "RESERVED 1 4\r\nnext\r\n", "an announcement": "OK 536000000\r\n",
	}
}

// Covers: E-37, C09, C46
func TestAReplyThatNobodyAskedForEndsTheIdleConnectionAndAnswersNobody(t *testing.T) {
	for _, k := range kits() {
		for name, raw := range surplus(k) {
			if name == "half of one" || name == "an announcement" {
				continue // not a reply yet: below
			}
			t.Run(k.name+" "+name, func(t *testing.T) {
				unasked(t, k, new(peer), func(v *visit) { v.say(raw) })
			})
			t.Run(k.name+" "+name+" right behind an answer", func(t *testing.T) {
				unasked(t, k, &peer{turn: 1, evil: func(v *visit, r request) { v.say(r.answer + raw) }}, nil)
			})
		}
	}
}

// Covers: E-37, C09
func TestAReplyThatComesBeforeAnyCommandAnswersNobody(t *testing.T) {
	for _, k := range kits() {
		for name, raw := range surplus(k) {
			t.Run(k.name+" "+name, func(t *testing.T) {
				p := new(peer)
				p.ready = func(v *visit) {
					if v.index == 0 { // the last answer of the handshake, and what nobody asked for, in one piece
						v.Conn = &prefixed{Conn: v.Conn, behind: raw}
					}
				}
				unasked(t, k, p, nil)
			})
		}
	}
}

// Covers: E-37, C46, E-16
func TestTheStartOfAReplyThatNobodyAskedForIsNotTheStartOfAnAnswer(t *testing.T) {
	for _, k := range kits() {
		for _, name := range []string{"half of one", "an announcement"} {
			t.Run(k.name+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { halfAsked(t, k, surplus(k)[name]) })
			})
		}
	}
}

// halfAsked: the start of a reply lies there when a command goes out. What comes of it must not be the command's
// answer in silence: the command either gets its own on a fresh connection, or fails in doubt.
func halfAsked(t *testing.T, k kit, raw string) {
	network := new(memnet.Network)
	l, err := network.Listen("server:1")
	require.NoError(t, err)
	p := &peer{honest: k.honest()}
	p.serve(l)
	c, err := k.open(network, false, fdengine.Options{})
	require.NoError(t, err)
	defer func() {
		_ = c.Close()
		<-c.Done()
		p.wait(l)
	}()
	first := k.call("first", false, 0)
	require.NoError(t, c.Do(context.Background(), first.cmd))
	p.mu.Lock()
	v := p.mu.visits[0]
	p.mu.Unlock()
	v.say(raw)
	synctest.Wait()
	start := time.Now()
	next := k.call("next", false, 0)
	if err := c.Do(context.Background(), next.cmd); err == nil {
		require.NoError(t, next.own())
	} else {
		maybe(t, err)
	}
	require.LessOrEqual(t, time.Since(start), readTimeout+slop)
	after := k.call("after", false, 0)
	require.NoError(t, c.Do(context.Background(), after.cmd))
	require.NoError(t, after.own())
	require.Equal(t, 2, network.Dials())
	tally.Scenario(1)
}
