package cases_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

// readerCmd encodes its argument from a reader, which gives its bytes once.
type readerCmd struct {
	scripted.Cmd
	r io.Reader
}

func (c *readerCmd) scripted() *scripted.Cmd { return &c.Cmd }

func (c *readerCmd) AppendRequest(dst []byte) ([]byte, error) {
	b, err := io.ReadAll(c.r)
	if err != nil {
		return dst, err
	}
	c.Args = []string{string(b)}
	return c.Cmd.AppendRequest(dst)
}

// sharingCmd encodes into one buffer that it shares with others, and appends from there.
type sharingCmd struct {
	scripted.Cmd
	buf *[]byte
}

func (c *sharingCmd) scripted() *scripted.Cmd { return &c.Cmd }

func (c *sharingCmd) AppendRequest(dst []byte) ([]byte, error) {
	*c.buf = scripted.AppendRequest((*c.buf)[:0], "ECHO", c.Token, strings.Repeat(c.Token, 1000))
	return append(dst, *c.buf...), nil
}

// pooled is an argument that marshals itself into a buffer it uses again.
type pooled struct{ buf []byte }

func (p *pooled) MarshalBinary() ([]byte, error) { return p.buf, nil }

// C15: the first attempt had consumed or released the payload, and the second announced the right length and sent
// nothing, or the bytes of a recycled buffer.
// https://github.com/golang/go/issues/32441 https://github.com/golang/go/issues/39086
// https://github.com/grpc/grpc-go/pull/3293
func TestTheSecondSendCarriesTheBytesOfTheFirst(t *testing.T) {
	const size = 64 << 10
	original := strings.Repeat("0123456789abcdef", size/16)
	// cutAt cuts the first connection when the client has sent so much on it.
	cutAt := func(k int64) func(int, *memnet.Conn, *memnet.Conn) error {
		return func(n int, c, _ *memnet.Conn) error {
			if n == 1 {
				c.Out().CutAt(k, memnet.Cut{})
			}
			return nil
		}
	}
	for name, arg := range map[string]func() (cmd *redis.Cmd, spoil func()){
		"bytes": func() (*redis.Cmd, func()) {
			b := []byte(original)
			return redis.Set("k", b), func() { fill(b) }
		},
		"a marshaler with one buffer": func() (*redis.Cmd, func()) {
			p := &pooled{[]byte(original)}
			return redis.NewCmd("SET", "k", p), func() { fill(p.buf) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			accept, at := taps()
			redisBubble(t, setup{OnDial: cutAt(size / 2), Accept: accept}, redis.Options{}, func(t *testing.T, r *redisRig) {
				cmd, spoil := arg()
				r.submit(cmd)
				spoil()
				for _, key := range tokens("other", 8) { // whoever uses a buffer again, uses it now
					r.submit(redis.Set(key, strings.Repeat("z", size)))
				}
				r.settled(time.Minute)
				r.ok(t, cmd)
				want := scripted.AppendRequest(nil, "SET", "k", original)
				for i := range 2 {
					got := at(i).bytes()
					from := bytes.Index(got, []byte("*3\r\n$3\r\nSET"))
					require.Positive(t, from)
					carried := got[from:min(len(got), from+len(want))]
					require.True(t, bytes.HasPrefix(want, carried), "connection %d carried other bytes", i)
				}
				require.Equal(t, original, r.server.ConnLog(1)[4][2])
				tally.Cut(1)
			})
		})
	}
	t.Run("a reader", func(t *testing.T) {
		bubble(t, setup{OnDial: cutAt(size / 2)}, func(t *testing.T, r *rig) {
			c := &readerCmd{*again("k", 2), strings.NewReader(original)}
			r.submit(c)
			r.settled(time.Minute)
			require.Equal(t, original, r.server.ConnLog(1)[1][2])
			require.Equal(t, 1, c.Encodes, "encoded once")
			tally.Cut(1)
		})
	})
	t.Run("32 that share a buffer", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			var buf []byte
			var cmds []*sharingCmd
			for _, token := range tokens("t", 32) {
				c := &sharingCmd{*again(token, 2), &buf}
				c.Traits.Class = carry.Replay
				cmds = append(cmds, c)
			}
			r.server.FreezeExec(true)
			r.submit(commands(cmds)...)
			synctest.Wait()
			r.last().Out().CutAfter(0, reset)
			fill(buf)
			r.server.FreezeExec(false)
			r.settled(time.Minute)
			r.ok(t, commands(cmds)...)
			for i, req := range r.server.Requests(1)[1:] {
				require.Equal(t, cmds[i].Token, req.Token())
				require.Equal(t, strings.Repeat(req.Token(), 1000), req.Args[2])
			}
			tally.Cut(1)
		})
	})
}

func fill(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}
