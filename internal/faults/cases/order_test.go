package cases_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
)

var refusals = []string{"LOADING soon", "TRYAGAIN later", "READONLY You can't write against a read only replica."}

// C07: a refused command went again and ran behind those that had been in flight behind it.
// https://github.com/IBM/sarama/issues/2619 https://github.com/IBM/sarama/issues/2860
// https://github.com/redis/go-redis/pull/3964
func TestARefusedCommandOfAStreamNeverRunsBehindALaterOne(t *testing.T) {
	// abc is SET k 1, SET k 2, GET k, told apart by their tokens.
	abc := func() []*scripted.Cmd {
		a, b, c := once("A"), once("B"), once("C")
		a.Verb, a.Args = "SET", []string{"k", "1"}
		b.Verb, b.Args = "SET", []string{"k", "2"}
		c.Verb, c.Args = "GET", []string{"k"}
		return []*scripted.Cmd{a, b, c}
	}
	for _, line := range refusals {
		name, _, _ := strings.Cut(line, " ")
		t.Run("stream, later ones run, "+name, func(t *testing.T) {
			s := script{"A": first(1, scripted.Refuse(line))}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Window: 16}}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				cmds, stream := abc(), r.Stream()
				r.together(func() {
					for _, c := range cmds {
						require.NoError(t, r.book.submit(bg, "stream", stream, c))
					}
				})
				r.settled(time.Minute)
				var refused *scripted.ServerError
				require.ErrorAs(t, r.err(t, cmds[0]), &refused)
				require.Equal(t, line, refused.Line)
				r.ok(t, cmds[1])
				// That B ran is the gap. C had been sent by then: it fails by its fate, whatever its reply will be.
				r.failed(t, cmds[2], carry.MaybeExecuted, fdengine.ErrStreamBroken)
				require.Equal(t, []string{"warm", "B", "C"}, r.server.Order(), "k is 2 in the end, and A did not run")
				d := once("D")
				fails(t, r.book.submit(bg, "stream", stream, d), carry.NotSent, fdengine.ErrStreamBroken)
			})
		})
		t.Run("stream, all refused, "+name, func(t *testing.T) {
			s := script{}
			for _, token := range []string{"A", "B", "C"} {
				s[token] = first(1, scripted.Refuse(line))
			}
			bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				cmds, stream := abc(), r.Stream()
				r.together(func() {
					for _, c := range cmds {
						require.NoError(t, r.book.submit(bg, "stream", stream, c))
					}
				})
				r.frees(commands(cmds)...) // each is on the wire twice
				r.settled(time.Minute)
				r.ok(t, commands(cmds)...)
				require.Equal(t, []string{"warm", "A", "B", "C"}, r.server.Order(), "held back and replayed in order")
				for _, c := range cmds {
					require.Equal(t, 2, c.Sends)
				}
			})
		})
		t.Run("no stream, "+name, func(t *testing.T) {
			s := script{"A": first(1, scripted.Refuse(line))}
			bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				cmds := abc()
				r.together(func() { r.submit(commands(cmds)...) })
				r.frees(cmds[0])
				r.settled(time.Minute)
				r.ok(t, commands(cmds)...)
				require.Equal(t, []string{"warm", "B", "C", "A"}, r.server.Order(), "each stands alone")
				require.Equal(t, 2, cmds[0].Sends, "and A says that it was sent twice")
				require.False(t, cmds[0].Maybe, "and that it did not run before")
			})
		})
	}
	t.Run("drop", func(t *testing.T) {
		// The tail goes out again in order, and what is submitted meanwhile does not slip in between.
		bubble(t, setup{Engine: fdengine.Options{Window: 16}}, func(t *testing.T, r *rig) {
			require.NoError(t, r.run(bg, once("warm")))
			r.server.FreezeExec(true)
			tail := echoes(tokens("tail", 40), func(s string) *scripted.Cmd { return again(s, 2) })
			r.submit(commands(tail)...)
			synctest.Wait()
			r.last().Out().CutAfter(0, reset)
			tally.Cut(1)
			fresh := echoes(tokens("new", 40), once)
			r.submit(commands(fresh)...)
			r.server.FreezeExec(false)
			r.settled(time.Minute)
			r.ok(t, commands(tail)...)
			r.ok(t, commands(fresh)...)
			require.Equal(t, slices.Concat(tokens("tail", 40), tokens("new", 40)), r.server.ConnTokens(1))
		})
	})
}

// C18: after a read error only the first of the unanswered commands was retried, and the rest vanished; or good
// results were thrown away with the bad.
// https://github.com/Grokzen/redis-py-cluster/pull/220 https://github.com/whatyouhide/redix/issues/316
// https://github.com/redis-rs/redis-rs/issues/1864
func TestTheWholeUnansweredTailIsSentAgainAndNothingElse(t *testing.T) {
	all := tokens("t", 50)
	drop := script{all[10]: first(1, scripted.DropBefore())}
	for name, opts := range map[string]fdengine.Options{"plain": {}, "strict order": {StrictOrder: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{Server: drop.options(), Engine: opts}, func(t *testing.T, r *rig) {
				require.NoError(t, r.run(bg, once("warm")))
				cmds := echoes(all, func(s string) *scripted.Cmd { return again(s, 1) })
				r.together(func() { r.submit(commands(cmds)...) })
				r.settled(time.Minute)
				r.ok(t, commands(cmds)...)
				require.Equal(t, all[10:], r.server.ConnTokens(1), "the forty, in order, and none of the ten")
				require.Equal(t, 2, r.server.Conns())
				for i, c := range cmds {
					require.Equal(t, 1+min(1, i/10), c.Sends)
					require.Equal(t, 1, r.server.Executions(c.Token))
				}
			})
			tally.Cut(1)
		})
	}
}
