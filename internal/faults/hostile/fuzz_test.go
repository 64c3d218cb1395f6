package hostile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// FuzzStream answers four commands with any bytes, in pieces of any size, whole and then silent or closed, in place of
// a handshake or behind one: every command settles once and in time, no border catches a panic, what is claimed not to
// have been sent never arrived, and the next connection serves.
func FuzzStream(f *testing.F) {
	for _, raw := range append([]string{
		"$4\r\ngood\r\n$6\r\nvictim\r\n$6\r\nbehind\r\n$5\r\nagain\r\n", "$4\r\ngood\r\n-LOADING x\r\n-READONLY y\r\n-MOVED 1 a:1\r\n", ">2\r\n+a\r\n+b\r\n$4\r\ngo",
		"%1\r\n+server\r\n+redis\r\n:1\r\n$2\r\nid\r\n+PONG\r\n>1\r\n+a\r\n", "|1\r\n+a\r\n+b\r\n$4\r\ngood\r\n+surplus\r\n+surplus\r\n+surplus\r\n+surplus\r\n",
		"INSERTED 1\r\nDRAINING\r\nOUT_OF_MEMORY\r\nINTERNAL_ERROR\r\n", "BURIED 1\r\nRESERVED 1 1\r\nx\r\n", "USING default\r\nUSING default\r\nINSERTED 5\r\n", "BAD_FORMAT\r\n",
	}, unframeable...) {
		if len(raw) < 4096 {
			f.Add([]byte(raw), uint8(3), uint8(0))
			f.Add([]byte(raw), uint8(200), uint8(7))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, piece, how uint8) {
		k := kits()[how&1]
		early, closes := how&2 != 0, how&4 != 0
		synctest.Test(t, func(t *testing.T) { stream(t, k, raw, int(piece)+1, early, closes) })
	})
}

func stream(t *testing.T, k kit, raw []byte, piece int, early, closes bool) {
	submitted := make(chan struct{})
	network := &memnet.Network{OnDial: func(int, *memnet.Conn, *memnet.Conn) error { <-submitted; return nil }}
	l, err := network.Listen("server:1")
	require.NoError(t, err)
	evil := func(v *visit) {
		for rest := raw; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			if !v.say(string(rest[:min(piece, len(rest))])) {
				return
			}
		}
		if closes {
			_ = v.raw.Close()
		}
	}
	p := &peer{honest: k.honest(), turn: 1, evil: func(v *visit, _ request) { evil(v) }}
	if early {
		p.welcome = evil
	}
	p.serve(l)
	c, err := k.open(network, false, fdengine.Options{BackoffMax: 20 * time.Millisecond})
	require.NoError(t, err)
	var calls []*call
	for _, token := range []string{"good", "victim", "behind", "again"} {
		x := k.call(token, token == "again", 0)
		calls = append(calls, x)
		require.NoError(t, c.Submit(context.Background(), x.cmd, x))
	}
	close(submitted)
	for _, x := range calls {
		<-x.done
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Nothing is required of this one: the peer may have said the start of a reply, which is whole with the next answer.
	_ = c.Do(ctx, k.call("late", false, 0).cmd)
	_, _ = c.Shutdown(ctx)
	<-c.Done()
	_, ran := p.wait(l)
	for _, x := range calls {
		require.Equal(t, 1, x.times, x.token)
		require.LessOrEqual(t, x.took, time.Minute, x.token)
		if fdengine.FateOf(x.err) == carry.NotSent {
			require.Zero(t, ran[x.token], "%s: %v", x.token, x.err)
		}
	}
	s := c.Engine().Stats()
	require.Equal(t, s.Accepted, s.Settled)
	require.Zero(t, s.Panics)
	require.Zero(t, network.Open())
}
