package differential

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// wiretap is a connection that changes what goes over it once: the first occurrence of old, which must not be cut in
// two by the network, becomes new, of the same length.
type wiretap struct {
	net.Conn
	old, new string
	inward   bool // what is received; else what is sent
	done     *atomic.Bool
}

func (w *wiretap) change(b []byte) {
	if i := bytes.Index(b, []byte(w.old)); i >= 0 && w.done.CompareAndSwap(false, true) {
		copy(b[i:], w.new)
	}
}

func (w *wiretap) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if w.inward {
		w.change(b[:n])
	}
	return n, err
}

func (w *wiretap) Write(b []byte) (int, error) {
	if !w.inward {
		b = bytes.Clone(b)
		w.change(b)
	}
	return w.Conn.Write(b)
}

// told makes a program of commands given one by one.
func told(m manner, cmds ...[]any) []*program {
	pc := piece{manner: m}
	for _, args := range cmds {
		pc.ops = append(pc.ops, op{args: args})
	}
	return []*program{{size: len(cmds), pieces: []piece{pc}}}
}

// TestOneWrongByteIsSeen shows that a comparison can fail: in a reply, in the order of replies, and in the data.
func TestOneWrongByteIsSeen(t *testing.T) {
	cmds := [][]any{{"SET", "k", "needle"}, {"INCR", "n"}, {"GET", "k"}, {"INCR", "n"}, {"INCR", "k"}, {"GET", "none"}}
	for _, tc := range []struct {
		name     string
		old, new string
		inward   bool
		wrong    []int // the commands whose outcomes differ
		data     bool  // the data differ
	}{
		{name: "nothing changed"},
		{name: "a byte of a reply", old: "needle", new: "noodle", inward: true, wrong: []int{2}},
		{name: "a number", old: ":2\r\n", new: ":3\r\n", inward: true, wrong: []int{3}},
		{name: "the text of an error", old: "-ERR value", new: "-ERR VALUE", inward: true, wrong: []int{4}},
		{name: "two replies that change places", old: "+OK\r\n:1\r\n", new: ":1\r\n+OK\r\n", inward: true, wrong: []int{0, 1}},
		{name: "a byte of a request", old: "needle", new: "noodle", wrong: []int{2}, data: true},
		{name: "a command", old: "INCR\r\n$1\r\nn", new: "DECR\r\n$1\r\nn", wrong: []int{1, 3}, data: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			first := testserver.StartRedis(t, testserver.RedisOptions{})
			second := testserver.StartRedis(t, testserver.RedisOptions{})
			var done atomic.Bool
			c := dial(t, redis.Options{Addr: first.Addr(), DialFunc: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return &wiretap{conn, tc.old, tc.new, tc.inward, &done}, err
			}})
			require.NoError(t, c.Ping(t.Context()))
			done.Store(tc.old == "") // whatever the handshake did
			p := told(batch, cmds...)
			got, want := runOurs(t, c, p), runTheirs(t, second.Addr(), 3, p)
			require.True(t, done.Load(), "the change found no place")
			var wrong []int
			for i := range cmds {
				if got[0][i] != want[0][i] {
					wrong = append(wrong, i)
				}
			}
			require.Equal(t, tc.wrong, wrong)
			require.Len(t, differences(p, got, want), len(tc.wrong))
			if tc.data {
				require.NotEqual(t, keyByKey(t, first), keyByKey(t, second))
				require.NotEqual(t, first.Text("DEBUG", "DIGEST"), second.Text("DEBUG", "DIGEST"))
			} else {
				requireSameData(t, first, second)
			}
		})
	}
}
