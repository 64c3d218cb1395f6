package fdengine_test

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// Covers: S4-3, E-1
func TestTheReaderWritesInOneGoWhatWasSubmittedWhileCallersWokeEachOther(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		for round := range 3 {
			cs, o := echoes("c"+itoa(round)+"-", 10, carry.NoRetry), &outcomes{}
			size := bytesOf(cs...)
			require.Equal(t, []writing{{true, size, size}}, r.turn(l, func() { submitAll(t, r, o, cs...) }))
			ok(t, o, cs...)
		}
		require.Equal(t, 1, r.server.Conns())
		require.Equal(t, uint64(3+12+30), r.Stats().Sent)
	})
}

// Covers: S4-3
func TestCallersInALoopAreWrittenByTheReaderTooAndTogether(t *testing.T) {
	const callers, rounds = 16, 200
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		require.NoError(t, r.Ping(bg))
		l.take()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for n := range rounds {
					c := scripted.Echo(itoa(i) + "-" + itoa(n))
					if err := r.Do(bg, c); err != nil || c.Reply != c.Token {
						t.Errorf("%s: %q, %v", c.Token, c.Reply, err)
					}
				}
			})
		}
		wg.Wait()
		byReader, size := 0, 0
		all := l.take()
		for _, w := range all {
			if w.byReader {
				byReader++
				size += w.n
			}
		}
		t.Logf("%d of %d writes by the reader, %d bytes each", byReader, len(all), size/max(byReader, 1))
		require.Positive(t, byReader)
		require.Less(t, len(all), callers*rounds/2, "several commands each")
	})
}

// plainly is a connection that cannot try.
type plainly struct{ net.Conn }

func (plainly) ExactWrite() bool { return true }

// Covers: S4-3, E-17
func TestTheReaderWritesNothingWhereItMayNot(t *testing.T) {
	for name, o := range map[string]setup{
		"an observer":           {Engine: fdengine.Options{Observer: &events{}}},
		"a limiter":             {Engine: fdengine.Options{Limiter: &limiter{}}},
		"cannot try":            {Wrap: func(c net.Conn) net.Conn { return plainly{c} }},
		"does not know exactly": {OnDial: func(_ int, c, _ *memnet.Conn) error { c.SetExactWrite(false); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			turnBubble(t, o, func(t *testing.T, r *rig, l *turns) {
				cs, got := echoes("c", 10, carry.NoRetry), &outcomes{}
				release, answered := r.chained()
				l.take()
				before := r.conn(0).Out().Writes()
				submitAll(t, r, got, cs...)
				synctest.Wait()
				require.Empty(t, l.take(), "the callers are still waking each other")
				release()
				answered()
				synctest.Wait()
				ok(t, got, cs...)
				require.Equal(t, before+1, r.conn(0).Out().Writes())
				for _, w := range l.take() {
					require.False(t, w.byReader)
				}
			})
		})
	}
}

// Covers: S4-3, E-1
func TestWhatTheConnectionDoesNotTakeAtOnceTheEngineGoroutineWrites(t *testing.T) {
	for _, takes := range []int{0, 1, 40, 100} {
		turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
			cs, o := echoes("c", 10, carry.NoRetry), &outcomes{}
			size := bytesOf(cs...)
			l.takes = takes
			require.Equal(t, []writing{{true, takes, size}, {false, size - takes, size - takes}}, r.turn(l, func() { submitAll(t, r, o, cs...) }))
			ok(t, o, cs...)
			require.Equal(t, tokens(cs), r.server.Order()[4:], "in order, byte for byte")
			require.Equal(t, 1, r.server.Conns())

			l.takes = -1
			more := echoes("d", 10, carry.NoRetry)
			size = bytesOf(more...)
			require.Equal(t, []writing{{true, size, size}}, r.turn(l, func() { submitAll(t, r, o, more...) }), "it is its turn again")
			ok(t, o, more...)
		})
	}
}

// What comes while the rest waits for the connection is behind it, also when the next chain ends meanwhile.
//
// Covers: E-1
func TestNothingPassesTheRestOfASpan(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		cs, o := echoes("c", 10, carry.NoRetry), &outcomes{}
		l.takes = 100
		release, answered := r.chained()
		submitAll(t, r, o, cs...)
		r.conn(0).Out().SetBuffer(100)
		r.server.FreezeReads(true)
		release()
		answered()
		later := echoes("later", 10, carry.NoRetry)
		for _, c := range later {
			go func() { o.Complete(c, r.Do(bg, c)) }()
			synctest.Wait()
		}
		r.server.FreezeReads(false)
		synctest.Wait()
		ok(t, o, append(cs, later...)...)
		require.Equal(t, append(tokens(cs), tokens(later)...), r.server.Order()[4:])
	})
}

// The server reads nothing while it has replies to write: whoever writes to it must go on reading.
//
// Covers: E-26
func TestTheReadersTurnBlocksNobodyWhoWantsItToRead(t *testing.T) {
	const callers, rounds = 8, 30
	small := func(_ int, c, _ *memnet.Conn) error {
		c.Out().SetBuffer(512)
		c.In().SetBuffer(512)
		return nil
	}
	turnBubble(t, setup{Server: scripted.Options{ReadAhead: -1}, OnDial: small}, func(t *testing.T, r *rig, l *turns) {
		pad := string(make([]byte, 700))
		r.SetWorthWaiting(1)
		l.takes = 300
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for n := range rounds {
					c := scripted.Echo(itoa(i) + "-" + itoa(n) + pad)
					if err := r.Do(bg, c); err != nil || c.Reply != c.Token {
						t.Errorf("%d-%d: %v", i, n, err)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, callers*rounds, r.server.Executed())
		require.Equal(t, 1, r.server.Conns())
	})
}

// Covers: S0-44, E-3
func TestCommandsWithoutReplyInTheReadersSpanAreToldOnceWhenTheyHaveLeft(t *testing.T) {
	s := script{}
	for _, tok := range []string{"q0", "q1", "q2"} {
		s[tok] = always(scripted.Action{NoReply: true})
	}
	for _, takes := range []int{-1, 30, 75} {
		turnBubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig, l *turns) {
			cs := []*scripted.Cmd{quiet("q0"), scripted.Echo("a"), quiet("q1"), scripted.Echo("b"), quiet("q2")}
			o := &outcomes{}
			l.takes = takes
			r.turn(l, func() { submitAll(t, r, o, cs...) })
			synctest.Wait()
			ok(t, o, cs[1], cs[3])
			for _, q := range []*scripted.Cmd{cs[0], cs[2], cs[4]} {
				require.NoError(t, settledOf(t, o, q))
				require.Equal(t, 1, r.server.Executions(q.Token))
			}
			require.Equal(t, 5, o.count())
		})
	}
}
