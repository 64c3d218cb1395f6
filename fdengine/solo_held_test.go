package fdengine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// A lone caller is held up in its write, and the sweeper wakes everybody: nobody writes beside it.
//
// Covers: E-1
func TestNobodyWritesWhileALoneCallerIsHeldUpInItsWrite(t *testing.T) {
	loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
		others := echoes("o", 3, carry.NoRetry)
		var told []<-chan error
		l.onWrite = firstTime(func() {
			for _, c := range others {
				told = append(told, r.later(bg, c))
				time.Sleep(20 * time.Millisecond)
			}
			require.Equal(t, []string{"lonely"}, r.server.Order())
		})
		lone := scripted.Echo("lone")
		require.NoError(t, r.Do(bg, lone))
		for _, ch := range told {
			require.NoError(t, <-ch)
		}
		require.Equal(t, append([]string{"lonely", "lone"}, tokens(others)...), r.server.Order())
		require.Equal(t, 1, r.server.Conns())
	})
}

// The reader that was called back has answered the lone caller before its write returned: the next caller is not lone
// yet.
//
// Covers: E-1
func TestNobodyIsLoneBeforeTheLastOneHasLeft(t *testing.T) {
	for _, answered := range []bool{true, false} {
		loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
			r.server.FreezeReplies(!answered)
			var next <-chan error
			lone, decoded := scripted.Echo("lone"), make(chan struct{})
			lone.OnDecode = func(fdengine.Reply) { close(decoded) }
			l.behind = firstTime(func() {
				if answered {
					<-decoded
					time.Sleep(time.Microsecond)
				} else {
					time.Sleep(20 * time.Millisecond)
				}
				next = r.later(bg, scripted.Echo("next"))
				time.Sleep(20 * time.Millisecond)
				writes, _ := l.serves()
				require.Equal(t, 1, writes)
			})
			done := r.later(bg, lone)
			pass(time.Second)
			r.server.FreezeReplies(false)
			require.NoError(t, <-done)
			require.Equal(t, "lone", lone.Reply)
			require.NoError(t, <-next)
			require.Equal(t, 1, r.server.Conns())
			synctest.Wait()
			r.lonely()
			before, _ := l.serves()
			require.NoError(t, r.Do(bg, scripted.Echo("again")))
			after, _ := l.serves()
			require.Equal(t, before+1, after)
		})
	}
}

// The connection dies while a lone caller is held up in its write and the reader, which was called back, has seen it. What
// is to be sent again must not be sent before the write is over.
//
// Covers: S4-3, E-5
func TestASessionIsNotOverWhileALoneCallerStillWrites(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"closed": func(r *rig) { r.server.CloseConns() },
		"silent": func(*rig) {},
	} {
		for class, runs := range map[carry.Class]int{carry.Replay: 2, carry.NoRetry: 1} {
			t.Run(name+itoa(runs), func(t *testing.T) {
				o := fdengine.Options{ReadTimeout: 40 * time.Millisecond}
				s := script{"c": first(1, scripted.Mute())}
				loneBubble(t, setup{Engine: o, Server: s.options()}, func(t *testing.T, r *rig, l *looks) {
					l.behind = firstTime(func() {
						time.Sleep(20 * time.Millisecond)
						end(r)
						time.Sleep(100 * time.Millisecond)
						require.Equal(t, 1, r.server.Conns(), "its bytes may yet be on their way")
					})
					c := scripted.Echo("c")
					c.Traits.Class = class
					err := r.Do(bg, c)
					if class == carry.Replay {
						require.NoError(t, err)
						require.Equal(t, 2, c.Sends)
					} else {
						failsAs(t, err, carry.MaybeExecuted)
					}
					require.Equal(t, runs, r.server.Executions("c"))
					require.NoError(t, r.Do(bg, scripted.Echo("after")))
					require.Equal(t, 2, r.server.Conns())
				})
			})
		}
	}
}

// Covers: E-14
func TestCloseAndShutdownEndWhileALoneCallerIsHeldUpInItsWrite(t *testing.T) {
	for name, end := range map[string]func(r *rig) error{
		"close":    func(r *rig) error { return r.Close() },
		"shutdown": func(r *rig) error { _, err := r.shutdown(time.Second); return err },
	} {
		t.Run(name, func(t *testing.T) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, _ *looks) {
				r.conn(0).Out().Freeze()
				r.conn(0).Out().SetBuffer(5)
				done := r.later(bg, scripted.Echo("c"))
				pass(30 * time.Millisecond) // the reader was called back
				start := time.Now()
				_ = end(r)
				require.LessOrEqual(t, time.Since(start), time.Second+20*time.Millisecond)
				err := <-done
				require.ErrorIs(t, err, fdengine.ErrClosed)
				within(t, time.Second, func() { <-r.Done() })
				require.Equal(t, 1, r.leaser.Counts().Removes)
			})
		})
	}
}

// Covers: E-29, S4-2
func TestAConnectionMarkedWhileTheReaderStandsByCarriesNoFurtherCommand(t *testing.T) {
	loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
		var lent []*pool.Conn
		e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: &grabber{r.leaser, &lent}})
		require.NoError(t, err)
		e.SetSoloAfter(1)
		require.NoError(t, e.Do(bg, scripted.Echo("a")))
		synctest.Wait()
		lent[0].MarkHandoff()
		require.NoError(t, e.Do(bg, scripted.Echo("b")))
		require.Equal(t, []string{"a"}, r.server.ConnTokens(1)[len(r.server.ConnTokens(1))-1:])
		writes, _ := l.serves()
		require.Zero(t, writes)
		require.Equal(t, 1, r.leaser.Counts().Puts)
		require.NoError(t, e.Close())
		<-e.Done()
	})
}
