package cases_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// halfCmd panics when half of its request is encoded.
type halfCmd struct{ scripted.Cmd }

func (c *halfCmd) scripted() *scripted.Cmd { return &c.Cmd }

func (c *halfCmd) AppendRequest(dst []byte) ([]byte, error) {
	panic(fmt.Sprintf("half a frame: %q", append(dst, "*2\r\n$4\r\nEC"...)))
}

// brokenFramer panics at the n-th frame it finds, once over all sessions.
type brokenFramer struct {
	fdengine.Protocol
	left *atomic.Int32
}

func (p *brokenFramer) Next(buf []byte) (int, int, fdengine.Kind, error) {
	n, need, kind, err := p.Protocol.Next(buf)
	if n > 0 && p.left.Add(-1) == 0 {
		panic("framer")
	}
	return n, need, kind, err
}

// C29: a decoder of the user panicked inside a reply, and took the process or the reader with it; or the connection,
// half read, was handed out again.
// https://github.com/redis/go-redis/pull/3964 https://github.com/redis/go-redis/pull/2375
func TestAPanicInForeignCodeCostsOneCommandOrOneConnection(t *testing.T) {
	// ten are in flight; the reply of the fourth is a megabyte.
	ten := func(class carry.Class) []*scripted.Cmd {
		cmds := echoes(tokens("t", 10), once)
		for _, c := range cmds {
			c.Traits.Class = class
		}
		return cmds
	}
	big := strings.Repeat("b", 1<<20)
	big3 := script{"t3": always(scripted.Action{Reply: scripted.AppendBulk(nil, big)})}
	for name, fall := range map[string]func(c *scripted.Cmd){
		"panic":     func(c *scripted.Cmd) { c.OnDecode = func(r fdengine.Reply) { panic(string(r.Frame[:10])) } },
		"panic nil": func(c *scripted.Cmd) { c.OnDecode = func(fdengine.Reply) { panic(nil) } },
		"Goexit":    func(c *scripted.Cmd) { c.DecodeGoexit = true },
		"own error": func(c *scripted.Cmd) { c.DecodePanic = fmt.Errorf("an error as a panic") },
		"index":     func(c *scripted.Cmd) { c.OnDecode = func(r fdengine.Reply) { _ = r.Frame[len(r.Frame)] } },
	} {
		t.Run("decoder, "+name, func(t *testing.T) {
			bubble(t, setup{Server: big3.options()}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				cmds := ten(carry.NoRetry)
				fall(cmds[3])
				r.together(func() { r.submit(commands(cmds)...) })
				r.settled(time.Minute)
				for i, c := range cmds {
					if i != 3 {
						r.ok(t, c)
						continue
					}
					r.failed(t, c, carry.Answered)
					var p *panics.Error
					require.ErrorAs(t, r.err(t, c), &p)
					require.NotEmpty(t, p.Stack)
				}
				require.NoError(t, r.run(bg, once("after")))
				require.Equal(t, 2, r.server.Conns(), "retired: drained, and then left")
				st := r.Stats()
				require.EqualValues(t, 1, st.Retired)
				require.EqualValues(t, 0, st.Cuts)
				require.EqualValues(t, 1, st.Panics)
				require.NotContains(t, r.server.ConnTokens(0), "after")
			})
		})
	}
	for _, class := range []carry.Class{carry.NoRetry, carry.Replay} {
		t.Run(fmt.Sprintf("framer, %v", class), func(t *testing.T) {
			left := new(atomic.Int32)
			left.Store(5) // the fourth of the ten, behind the warm one
			eo := fdengine.Options{Protocol: func() fdengine.Protocol { return &brokenFramer{scripted.NewProtocol(), left} }}
			bubble(t, setup{Engine: eo}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				cmds := ten(class)
				r.together(func() { r.submit(commands(cmds)...) })
				r.settled(time.Minute)
				r.ok(t, commands(cmds[:3])...)
				for _, c := range cmds[3:] {
					if class == carry.Replay {
						r.ok(t, c)
						require.Equal(t, 2, c.Sends)
						continue
					}
					r.failed(t, c, carry.MaybeExecuted)
					var p *panics.Error
					require.ErrorAs(t, r.err(t, c), &p)
				}
				require.NoError(t, r.run(bg, once("after")))
				require.EqualValues(t, 1, r.Stats().Cuts)
			})
		})
	}
	t.Run("encoder, in the middle of a frame", func(t *testing.T) {
		accept, at := taps()
		bubble(t, setup{Accept: accept}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			before := len(at(0).bytes())
			c := &halfCmd{*once("half")}
			var p *panics.Error
			err := r.run(bg, c)
			fails(t, err, carry.NotSent)
			require.ErrorAs(t, err, &p)
			synctest.Wait()
			require.Len(t, at(0).bytes(), before, "nothing of it is on the wire")
			require.NoError(t, r.run(bg, once("after")))
			require.Equal(t, 1, r.server.Conns())
		})
	})
	t.Run("thirty in a row", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			for i := range 30 {
				c := once(fmt.Sprintf("p%d", i))
				c.DecodePanic = i
				fails(t, r.run(bg, c), carry.Answered)
			}
			start := time.Now()
			for i := range 1000 {
				require.NoError(t, r.run(bg, once(fmt.Sprintf("after%d", i))))
			}
			took(t, start, 0, 10*time.Millisecond)
			require.Equal(t, 31, r.server.Conns(), "one for each panic, and one that stays")
			require.Equal(t, 1, r.leaser.Counts().Out)
			require.Equal(t, 30, r.leaser.Counts().Removes)
		})
	})
	t.Run("during a replay", func(t *testing.T) {
		s := script{"t0": onConn(0, scripted.DropBefore())}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			cmds := ten(carry.Replay)
			for _, c := range cmds {
				c.Traits.Budget = 1 // so that one more reconnect would be one too many
			}
			cmds[4].DecodePanic = "on the second connection"
			r.together(func() { r.submit(commands(cmds)...) })
			r.settled(time.Minute)
			for i, c := range cmds {
				if i == 4 {
					r.failed(t, c, carry.Answered)
				} else {
					r.ok(t, c)
					require.Equal(t, 2, c.Sends)
				}
			}
			tally.Cut(1)
		})
	})
}
