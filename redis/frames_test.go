package redis

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/proto/resp"
)

// Lengths that overflow, carry stray characters or lie once re-framed the stream of a client: later commands read
// the rest of an earlier reply (case C08).
func TestABadFrameCutsTheConnectionAndNobodyGetsForeignBytes(t *testing.T) {
	for name, bad := range map[string]string{
		"bulk over the limit": "$4294967296\r\n", "stray character": "$0:\r\n", "negative bulk": "$-2\r\n",
		"overflow": "$18446744073709551621\r\n", "negative array": "*-2\r\n", "huge array": "*2147483647\r\n",
		"stray digit": ":12x\r\n", "deep nesting": strings.Repeat("*1\r\n", 100_000), "unknown type": "@what\r\n",
		"cut inside": "", "frame end missing": "$5\r\nabcdefgh\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			action := scripted.Reply(bad)
			if bad == "" {
				action = scripted.Action{Reply: []byte("$5\r\nabc"), Close: true}
			}
			bubble(t, scripted.Options{Script: onceAt("t3", action)}, Options{}, func(t *testing.T, r *rig) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var cmds []*Cmd
				for i := 1; i <= 10; i++ { // 3 and 5 must not run twice, the others may
					class := carry.Replay
					if i == 3 || i == 5 {
						class = carry.NoRetry
					}
					cmds = append(cmds, Echo(fmt.Sprintf("t%d", i)).WithClass(class))
				}
				outs := r.hold(t, cmds)
				r.server.FreezeExec(false)
				for i, o := range outs {
					<-o.done
					token := fmt.Sprintf("t%d", i+1)
					if i == 2 || i == 4 {
						requireMaybe(t, o.err)
						require.LessOrEqual(t, r.server.Executions(token), 1, "NoRetry")
						var pe *resp.ProtocolError
						if bad != "" {
							require.ErrorAs(t, o.err, &pe)
						}
						continue
					}
					require.NoError(t, o.err, token)
					got, err := cmds[i].Text()
					require.NoError(t, err)
					require.Equal(t, token, got)
				}
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
				require.Equal(t, 2, r.server.Conns())
			})
		})
	}
}

func TestUnusualButLegalFramesAreAnswersAndTheNextReplyIsRight(t *testing.T) {
	for name, frame := range map[string]string{
		"600 KB simple string": "+" + strings.Repeat("s", 600<<10) + "\r\n", "empty bulk": "$0\r\n\r\n", "null bulk": "$-1\r\n",
		"null array": "*-1\r\n", "null": "_\r\n", "set": "~2\r\n:1\r\n:2\r\n", "map": "%2\r\n+known\r\n:1\r\n+unknown\r\n*1\r\n_\r\n",
		"attribute": "|1\r\n+ttl\r\n:3\r\n+x\r\n",
	} {
		bubble(t, scripted.Options{Script: onceAt("odd", scripted.Reply(frame))}, Options{}, func(t *testing.T, r *rig) {
			odd, next := Get("odd"), Echo("next")
			for _, err := range submitAll(t, r, []*Cmd{odd, next}) {
				require.NoError(t, err, name)
			}
			_, err := odd.Int64() // reading it as the wrong type is harmless
			require.Error(t, err, name)
			got, err := next.Text()
			require.NoError(t, err, name)
			require.Equal(t, "next", got, name)
			require.Equal(t, 1, r.server.Conns(), name)
		})
	}
}

// Covers: E-30
func TestPushesGoToTheHandlerAndNeverToACommand(t *testing.T) {
	push := string(scripted.PushFrame("invalidate", "k"))
	var pushes atomic.Int32
	o := Options{OnPush: func(frame []byte) {
		if string(frame) != push {
			panic("not the push")
		}
		if pushes.Add(1) == 2 {
			panic("a handler may panic")
		}
	}}
	bubble(t, scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		return scripted.Action{PushBefore: []byte(push), PushAfter: []byte(push + push)} // glued to the reply
	}}, o, func(t *testing.T, r *rig) {
		var cmds []*Cmd
		for i := range 50 {
			cmds = append(cmds, Incr(fmt.Sprintf("t%d", i)))
		}
		for i, err := range submitAll(t, r, cmds) {
			require.NoError(t, err)
			got, err := cmds[i].Text()
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("t%d", i), got)
		}
		r.server.Conn(0).Push([]byte(push)) // alone, while idle
		require.NoError(t, r.Do(context.Background(), Echo("last")))
		synctest.Wait()
		require.EqualValues(t, 50*3+1+3, pushes.Load())
		require.Equal(t, 1, r.server.Conns())
	})
}

// Covers: E-37
func TestAReplyThatNobodyAskedForEndsTheConnection(t *testing.T) {
	bubble(t, scripted.Options{}, Options{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(context.Background(), Echo("a")))
		r.server.Conn(0).Push([]byte(ok))
		<-r.server.Conn(0).Done()
		c := Incr("b")
		require.NoError(t, r.Do(context.Background(), c))
		got, err := c.Text()
		require.NoError(t, err)
		require.Equal(t, "b", got, "never the stray OK")
		require.Equal(t, 2, r.server.Conns())
		require.Equal(t, 1, r.server.Executions("b"))
	})
}

// Covers: E-37
func TestACrowdedServerIsAFailedDialAndTheCommandWaits(t *testing.T) {
	n := 0
	so := scripted.Options{OnHandshake: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		if c.Index() < 3 {
			n++
			return scripted.Action{Refuse: "ERR max number of clients reached", Close: true}
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(context.Background(), Incr("a")))
		require.Equal(t, 4, r.server.Conns())
		require.Equal(t, 1, r.server.Executions("a"))
		require.EqualValues(t, 3, r.Stats().Engine.LeaseErrors)
	})
}

func TestADecoderOfItsOwnMayFailAndCostsNobodyElse(t *testing.T) {
	bubble(t, scripted.Options{}, Options{}, func(t *testing.T, r *rig) {
		err := r.Do(context.Background(), failing{Echo("x")})
		require.ErrorIs(t, err, errDecoder)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		require.NoError(t, r.Do(context.Background(), Echo("y").WithTimeout(time.Second)))
		require.Equal(t, 1, r.server.Conns())
	})
}
