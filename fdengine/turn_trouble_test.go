package fdengine_test

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// span is what a reader's turn writes in the tests below: both classes, both in what leaves and in what does not.
func span() []*scripted.Cmd {
	cs := echoes("c", 6, carry.NoRetry)
	cs[1].Traits.Class, cs[4].Traits.Class = carry.Replay, carry.Replay
	return cs
}

// Covers: E-5, E-6, P3
func TestAWriteThatFailsInTheReadersTurnLeavesExactFates(t *testing.T) {
	// 0 to 2 left; 3 did, but for its last byte, or did not at all.
	for _, short := range []int{bytesOf(span()[:3]...), bytesOf(span()[:4]...) - 1} {
		turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
			cs, o := span(), &outcomes{}
			size := bytesOf(cs...)
			all := r.turn(l, func() {
				submitAll(t, r, o, cs...)
				r.conn(0).Out().ShortWrites(short, syscall.ECONNRESET)
			})
			require.Equal(t, writing{true, short, size}, all[0])
			pass(5 * time.Second)
			failed(t, o, cs[0], carry.MaybeExecuted, fdengine.ErrMaybeExecuted, syscall.ECONNRESET)
			failed(t, o, cs[2], carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			ok(t, o, cs[1], cs[3], cs[4], cs[5])
			require.Equal(t, 2, cs[1].Sends)
			require.True(t, cs[1].Maybe)
			for _, c := range cs[3:] {
				require.Equal(t, 1, c.Sends, "it had not left")
				require.Equal(t, 1, r.server.Executions(c.Token))
			}
			for _, c := range []*scripted.Cmd{cs[0], cs[2]} {
				require.LessOrEqual(t, r.server.Executions(c.Token), 1, "never again")
			}
			require.Equal(t, uint64(1), r.Stats().Cuts)
			require.Equal(t, uint64(1), r.Stats().Replays)
			require.Equal(t, 2, r.server.Conns())
		})
	}
}

// stuck lets the reader write the first three commands of cs; the rest is left to the engine goroutine, which waits for a server
// that reads nothing.
func (r *rig) stuck(l *turns, o *outcomes, cs []*scripted.Cmd) {
	r.t.Helper()
	release, answered := r.chained()
	r.server.FreezeReads(true)
	submitAll(r.t, r, o, cs...)
	l.take()
	l.takes = bytesOf(cs[:3]...)
	r.conn(0).Out().SetBuffer(l.takes + 5) // a read that is under way takes a chunk yet
	r.conn(0).Out().Freeze()
	release()
	answered()
	synctest.Wait()
	require.Equal(r.t, []writing{{true, l.takes, bytesOf(cs...)}}, l.take())
	require.Equal(r.t, l.takes+5, r.conn(0).Out().Buffered())
	require.Zero(r.t, o.count())
}

// Covers: E-5, E-6, P3, P10
func TestAConnectionThatEndsWhileTheRestWaitsLeavesExactFates(t *testing.T) {
	t.Run("close", func(t *testing.T) {
		turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
			cs, o := span(), &outcomes{}
			r.stuck(l, o, cs)
			require.NoError(t, r.Close())
			within(t, time.Second, func() { <-r.Done() })
			for i, c := range cs {
				// Close does not wait for the write that is under way: all of its span may have left.
				failed(t, o, c, carry.MaybeExecuted, fdengine.ErrClosed)
				require.Zero(t, r.server.Executions(c.Token), i)
			}
		})
	})
	for name, end := range map[string]func(r *rig){
		"reset":         func(r *rig) { r.conn(0).Out().CutAfter(0, memnet.Cut{Reset: true, Drop: true}) },
		"write timeout": func(*rig) { pass(15 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
				cs, o := span(), &outcomes{}
				r.stuck(l, o, cs)
				l.takes = -1
				r.server.FreezeReads(false)
				end(r)
				pass(5 * time.Second)
				failed(t, o, cs[0], carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
				failed(t, o, cs[2], carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
				ok(t, o, cs[1], cs[3], cs[4], cs[5])
				for _, c := range cs[3:] {
					require.Equal(t, 1, c.Sends, "it had not left")
				}
				require.Equal(t, uint64(1), r.Stats().Cuts)
			})
		})
	}
}

// Covers: P10
func TestShutdownDrainsWhatTheReaderLeftToTheEngineGoroutine(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		cs, o := span(), &outcomes{}
		r.stuck(l, o, cs)
		done := make(chan fdengine.Report, 1)
		go func() {
			rep, err := r.Shutdown(bg)
			if err != nil {
				t.Error(err)
			}
			done <- rep
		}()
		pass(100 * time.Millisecond)
		r.server.FreezeReads(false)
		r.conn(0).Thaw()
		within(t, time.Second, func() { require.Equal(t, fdengine.Report{Answered: len(cs)}, <-done) })
		ok(t, o, cs...)
		require.Equal(t, 1, r.leaser.Counts().Puts)
	})
	turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
		cs, o := span(), &outcomes{}
		r.stuck(l, o, cs)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start := time.Now()
		_, err := r.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		<-r.Done()
		require.Equal(t, len(cs), o.count())
	})
}

// Covers: S4-14, E-5, E-13
func TestATryThatFailsInForeignCodeCostsItsConnectionAndMayHaveLeft(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		for _, left := range []bool{false, true} {
			turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
				cs, o := span(), &outcomes{}
				arm, fall := once(deed)
				if left {
					l.behind = func(n int, err error) (int, error) { fall(); return n, err }
				} else {
					l.before = fall
				}
				r.turn(l, func() { submitAll(t, r, o, cs...); arm() })
				pass(5 * time.Second)
				for i, c := range cs {
					if c.Traits.Class == carry.Replay {
						ok(t, o, c)
						require.Equal(t, 2, c.Sends)
						continue
					}
					fallen(t, o, c, "conn.TryWrite", carry.MaybeExecuted)
					require.LessOrEqual(t, r.server.Executions(c.Token), 1, i)
				}
				require.Equal(t, uint64(1), r.Stats().Cuts)
				require.Equal(t, uint64(1), r.Stats().Panics)
				require.Equal(t, 2, r.server.Conns())

				more := echoes("more", 10, carry.NoRetry)
				l.take()
				release, answered := r.chained()
				submitAll(t, r, o, more...)
				release()
				answered()
				synctest.Wait()
				ok(t, o, more...)
			})
		}
	})
}

// A cut comes while the reader writes, and the engine goroutine has been told to wait for it: what the write says in the end
// decides.
//
// Covers: S4-14, P10
func TestACutDuringTheReadersWriteWaitsForItAndBelievesIt(t *testing.T) {
	for _, fails := range []bool{false, true} {
		turnBubble(t, setup{}, func(t *testing.T, r *rig, l *turns) {
			cs, o := span(), &outcomes{}
			in, free := make(chan struct{}), make(chan struct{})
			arm, stop := once(func() { close(in); <-free })
			l.takes = bytesOf(cs[:3]...)
			l.behind = func(n int, err error) (int, error) {
				stop()
				if fails {
					panic("late")
				}
				return n, err
			}
			release, answered := r.chained()
			submitAll(t, r, o, cs...)
			arm()
			go release()
			answered()
			<-in
			more := scripted.Echo("more")
			submitAll(t, r, o, more)
			pass(20 * time.Millisecond) // the engine goroutine is told of it
			r.conn(0).Out().CutAfter(0, memnet.Cut{Reset: true, Drop: true})
			pass(20 * time.Millisecond)
			require.Zero(t, o.count())
			l.takes = -1
			close(free)
			pass(5 * time.Second)
			failed(t, o, cs[0], carry.MaybeExecuted)
			failed(t, o, cs[2], carry.MaybeExecuted)
			ok(t, o, cs[1], cs[4], more)
			if fails {
				failed(t, o, cs[5], carry.MaybeExecuted)
				require.ErrorAs(t, settledOf(t, o, cs[5]), new(*panics.Error))
			} else {
				ok(t, o, cs[3], cs[5])
			}
		})
	}
}
