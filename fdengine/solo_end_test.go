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

// Covers: E-4, E-14, S4-1
func TestCloseInTheMiddleOfALoneCall(t *testing.T) {
	for when, arrange := range moments {
		t.Run(when, func(t *testing.T) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
				c := scripted.Echo("c")
				arrange(l, c, func() {
					if when == "before its read" {
						r.conn(0).In().Freeze() // the reply has no way
					}
					at := time.Now()
					require.NoError(t, r.Close())
					require.Zero(t, time.Since(at))
				})
				err := r.Do(bg, c)
				switch when {
				case "before its write":
					failsAs(t, err, carry.MaybeExecuted, fdengine.ErrClosed) // it had been claimed: nobody knows yet
				case "at its reply":
					require.NoError(t, err, "it had been decided")
				default:
					failsAs(t, err, carry.MaybeExecuted, fdengine.ErrClosed)
				}
				within(t, time.Second, func() { <-r.Done() })
				require.Equal(t, 1, r.leaser.Counts().Removes)
				failsAs(t, r.Do(bg, scripted.Echo("d")), carry.NotSent, fdengine.ErrClosed)
			})
		})
	}
}

// Covers: E-14, S4-1
func TestCloseAndShutdownWhileTheReaderStandsBy(t *testing.T) {
	loneBubble(t, setup{}, func(t *testing.T, r *rig, _ *looks) {
		require.NoError(t, r.Close())
		within(t, time.Second, func() { <-r.Done() })
		require.Equal(t, 1, r.leaser.Counts().Removes)
	})
	loneBubble(t, setup{}, func(t *testing.T, r *rig, _ *looks) {
		_, err := r.shutdown(time.Second)
		require.NoError(t, err)
		require.Equal(t, 1, r.leaser.Counts().Puts)
	})
}

// Covers: E-14, S4-1
func TestShutdownLetsALoneCallerFinish(t *testing.T) {
	for when, arrange := range moments {
		t.Run(when, func(t *testing.T) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
				c, done := scripted.Echo("c"), make(chan error, 1)
				arrange(l, c, func() {
					go func() {
						_, err := r.shutdown(time.Second)
						done <- err
					}()
					synctest.Wait()
				})
				start := time.Now()
				require.NoError(t, r.Do(bg, c))
				require.NoError(t, <-done)
				require.Less(t, time.Since(start), 20*time.Millisecond)
				require.Equal(t, 1, r.leaser.Counts().Puts)
			})
		})
	}
}

// Covers: E-14
func TestShutdownBehindASilentServerIsBoundedThoughALoneCallerReads(t *testing.T) {
	loneBubble(t, setup{}, func(t *testing.T, r *rig, _ *looks) {
		r.server.FreezeReplies(true)
		done := r.later(bg, scripted.Echo("c"))
		synctest.Wait()
		start := time.Now()
		_, err := r.shutdown(time.Second)
		require.Error(t, err)
		require.InDelta(t, time.Second, time.Since(start), float64(20*time.Millisecond))
		failsAs(t, <-done, carry.MaybeExecuted, fdengine.ErrClosed)
	})
}

// Covers: E-29, S4-2
func TestAHandoffDuringALoneCallPutsTheConnectionBehindIt(t *testing.T) {
	for when, arrange := range moments {
		t.Run(when, func(t *testing.T) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, l *looks) {
				var lent []*pool.Conn
				e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: &grabber{r.leaser, &lent}})
				require.NoError(t, err)
				e.SetSoloAfter(1)
				require.NoError(t, e.Do(bg, scripted.Echo("a")))
				synctest.Wait()
				c := scripted.Echo("c")
				arrange(l, c, func() { lent[0].MarkHandoff() })
				require.NoError(t, e.Do(bg, c))
				writes, _ := l.serves()
				require.Equal(t, 1, writes)
				pass(20 * time.Millisecond)
				require.Equal(t, 1, r.leaser.Counts().Puts)
				require.NoError(t, e.Do(bg, scripted.Echo("d")))
				require.Equal(t, 3, r.server.Conns())
				require.Equal(t, 1, r.leaser.Counts().Removes, "the grabber's, who gives it to somebody else")
				require.NoError(t, e.Close())
				<-e.Done()
			})
		})
	}
}

// Covers: E-29
func TestAnIdleConnectionIsReleasedAndPingedBehindALonePhase(t *testing.T) {
	o := fdengine.Options{IdleRelease: 30 * time.Second, PingEvery: time.Second}
	loneBubble(t, setup{Engine: o}, func(t *testing.T, r *rig, l *looks) {
		for range 3 {
			require.NoError(t, r.Do(bg, scripted.Echo("c")))
			synctest.Wait()
		}
		pass(10500 * time.Millisecond)
		require.InDelta(t, 10, r.pings(0), 2)
		require.Zero(t, r.leaser.Counts().Puts)
		pass(25 * time.Second)
		require.Equal(t, 1, r.leaser.Counts().Puts)
		require.Zero(t, r.leaser.Counts().Removes)
		r.lonely()
		before, _ := l.serves()
		require.NoError(t, r.Do(bg, scripted.Echo("d")))
		after, _ := l.serves()
		require.Equal(t, before+1, after)
		require.Equal(t, 1, r.server.Conns())
	})
}

// Between two lone calls nobody reads. What happens then is noticed within two ticks of the sweeper, also when that
// slept because the server took its time.
//
// Covers: S2-9, E-27
func TestWhatTheServerDoesBehindALonePhaseIsNoticedWithinTwoTicks(t *testing.T) {
	for name, row := range map[string]struct{ pause, delay time.Duration }{
		"":                {},
		"slow":            {delay: 322 * time.Millisecond},
		"paused":          {pause: time.Minute},
		"paused and slow": {pause: time.Minute, delay: 322 * time.Millisecond},
	} {
		for _, closes := range []bool{true, false} {
			for calls := range 4 {
				t.Run(name+itoa(calls), func(t *testing.T) {
					pushes := 0
					o := fdengine.Options{OnPush: func([]byte) { pushes++ }, PingEvery: -1}
					s := script{"c": always(scripted.Delay(row.delay))}
					loneBubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig, _ *looks) {
						for range calls {
							pass(row.pause)
							require.NoError(t, r.Do(bg, scripted.Echo("c")))
						}
						if closes {
							r.server.CloseConns()
						} else {
							r.server.Conn(0).Push(scripted.PushFrame("a", "b"))
						}
						pass(10 * time.Millisecond)
						require.Equal(t, b2i(closes), r.leaser.Counts().Removes)
						require.Equal(t, b2i(!closes), pushes)
					})
				})
			}
		}
	}
}

// While nobody read, the server said something that nobody asked for, or closed. A connection that was put back then took
// it along.
//
// Covers: S4-2, E-29
func TestWhatCameWhileNobodyReadDecidesWhetherTheConnectionIsPut(t *testing.T) {
	for name, do := range map[string]func(*rig){
		"a reply": func(r *rig) { r.server.Conn(0).Push([]byte("+late\r\n")) },
		"half":    func(r *rig) { r.server.Conn(0).Push([]byte("+la")) },
		"the end": func(r *rig) { r.server.CloseConns() },
	} {
		t.Run(name, func(t *testing.T) {
			loneBubble(t, setup{}, func(t *testing.T, r *rig, _ *looks) {
				do(r)
				synctest.Wait()
				_, err := r.shutdown(time.Second)
				require.NoError(t, err)
				require.Equal(t, 1, r.leaser.Counts().Removes)
			})
		})
	}
	pushes := 0
	loneBubble(t, setup{Engine: fdengine.Options{OnPush: func([]byte) { pushes++ }}}, func(t *testing.T, r *rig, _ *looks) {
		r.server.Conn(0).Push(scripted.PushFrame("a", "b"))
		synctest.Wait()
		_, err := r.shutdown(time.Second)
		require.NoError(t, err)
		require.Equal(t, 1, r.leaser.Counts().Puts)
		require.Equal(t, 1, pushes)
	})
}
