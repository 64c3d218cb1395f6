package fdengine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// The panic table once more for a lone caller, who writes and reads on its own goroutine.

// alone makes the engine of r one whose next caller goes solo.
func (r *rig) alone(n int) {
	r.t.Helper()
	for i := range 40 {
		require.NoError(r.t, r.Do(bg, scripted.Echo(fmt.Sprintf("alone%d-%d", n, i))))
	}
	require.True(r.t, r.Vacant(), "the reader stands by")
}

// Covers: S4-14, E-3, E-7
func TestForeignCodeThatFailsOnALoneCallersGoroutineCostsWhatItCostsElsewhere(t *testing.T) {
	for where, c := range map[string]struct {
		fate    carry.Fate
		runs    int // of the command
		cuts    uint64
		retired uint64
		then    scripted.Action
	}{
		"DecodeReply": {fate: carry.Answered, runs: 1, retired: 1},
		"Verdict":     {fate: carry.MaybeExecuted, cuts: 1, then: scripted.Refuse("ERR no")},
		"own verdict": {fate: carry.MaybeExecuted, runs: 1, cuts: 1},
		"Next":        {fate: carry.MaybeExecuted, runs: 1, cuts: 1},
		"Write":       {fate: carry.MaybeExecuted, runs: 1, cuts: 1},
		"Read":        {fate: carry.MaybeExecuted, runs: 1, cuts: 1},
	} {
		t.Run(where, func(t *testing.T) {
			misbehave(t, func(t *testing.T, deed func()) {
				arm, fall := once(deed)
				here := func(place string) func() {
					if place == where {
						return fall
					}
					return func() {}
				}
				conn := &touchy{}
				o := setup{
					Server: script{"bad": always(c.then)}.options(), Wrap: firstOnly(conn),
					Engine: fdengine.Options{LoneCaller: 1, Protocol: judged(here("Next"), here("Verdict"))},
				}
				bubble(t, o, func(t *testing.T, r *rig) {
					r.alone(1)
					bad := scripted.Echo("bad")
					bad.OnDecode = func(fdengine.Reply) { here("DecodeReply")() }
					var cmd fdengine.Command = bad
					if where == "own verdict" {
						cmd = &scripted.JudgingCmd{Cmd: *bad, Judge: func([]byte, bool) fdengine.Verdict { fall(); return fdengine.Verdict{} }}
					}
					arm()
					switch where {
					case "Write":
						conn.afterWrite = fall
						conn.armed.Store(true)
					case "Read":
						conn.afterRead = fall
						conn.armed.Store(true)
					}
					res := make(chan error, 1)
					ended := make(chan struct{})
					go func() { // a Goexit ends it, which is its own doing
						defer close(ended)
						res <- r.Do(bg, cmd)
					}()
					<-ended
					select {
					case err := <-res:
						failsAs(t, err, c.fate)
						var p *panics.Error
						require.ErrorAs(t, err, &p)
					default:
					}
					pass(time.Second)
					require.Equal(t, c.runs, r.server.Executions("bad"))
					require.Equal(t, []uint64{c.cuts, c.retired}, []uint64{r.Stats().Cuts, r.Stats().Retired})
					within(t, time.Minute, func() { r.alone(2) })
					o := &outcomes{}
					cs := echoes("c", 10, carry.NoRetry)
					r.together(func() { submitAll(t, r, o, cs...) })
					pass(time.Second)
					ok(t, o, cs...)
				})
			})
		})
	}
}

// Others come while a lone caller reads, and while nobody does: they are served at once.
//
// Covers: E-11
func TestWhoeverComesBesideALoneCallerIsServedAtOnce(t *testing.T) {
	s := script{"slow": always(scripted.Delay(time.Second))}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{LoneCaller: 1}}, func(t *testing.T, r *rig) {
		r.alone(1)
		slow := scripted.Echo("slow")
		done := r.later(bg, slow)
		synctest.Wait()
		o, c := &outcomes{}, scripted.Echo("c")
		submitAll(t, r, o, c)
		pass(100 * time.Millisecond)
		require.Equal(t, 2, r.server.Arrived()-41, "it is on the wire beside the other one")
		require.NoError(t, <-done)
		synctest.Wait()
		ok(t, o, c)

		r.alone(2)
		start := time.Now()
		submitAll(t, r, o, scripted.Echo("d"))
		synctest.Wait()
		require.Equal(t, 2, o.count())
		require.Zero(t, time.Since(start))

		r.alone(3)
		r.server.Conn(0).Push([]byte("+OK\r\n")) // nobody asked for it, and nobody reads
		pass(50 * time.Millisecond)
		require.Equal(t, uint64(1), r.Stats().Cuts)
		last := scripted.Echo("last")
		require.NoError(t, r.Do(bg, last))
		require.Equal(t, "last", last.Reply)
	})
}
