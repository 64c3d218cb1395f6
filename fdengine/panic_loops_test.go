package fdengine_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

// The end of the panic table: faults of the engine's own loops, and what they must not do to foreign code.

// Covers: S4-14, A-7
func TestAReaderThatFallsOverItsOwnFeetIsACutAndGivesBackWhatItHeld(t *testing.T) {
	t.Run("before it has an outcome", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			o, before, behind := &outcomes{}, scripted.Echo("before"), scripted.ReplayEcho("behind")
			judge := func([]byte, bool) fdengine.Verdict {
				r.Derail(true)
				return fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}
			}
			bad := &scripted.JudgingCmd{Cmd: *scripted.Echo("bad"), Judge: judge}
			r.together(func() {
				submitAll(t, r, o, before)
				require.NoError(t, r.Submit(bg, bad, o))
				submitAll(t, r, o, behind)
			})
			pass(3 * time.Second)
			ok(t, o, before, behind)
			failed(t, o, bad, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			require.Equal(t, 1, r.server.Executions("bad"), "it is NoRetry and may have run")
			require.Equal(t, uint64(1), r.Stats().Cuts)
			require.NoError(t, r.Do(bg, scripted.Echo("after")))
		})
	})
	t.Run("its caller is leaving", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			in, free := make(chan struct{}), make(chan struct{})
			bad := &scripted.JudgingCmd{Cmd: *scripted.ReplayEcho("bad"), Judge: func([]byte, bool) fdengine.Verdict {
				close(in)
				<-free
				r.Derail(true)
				return fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}
			}}
			ctx, cancel := context.WithCancel(bg)
			left := r.later(ctx, bad)
			<-in
			cancel()
			synctest.Wait()
			close(free)
			failsAs(t, <-left, carry.MaybeExecuted, context.Canceled)
			require.NoError(t, r.Do(bg, scripted.Echo("after")))
			require.Equal(t, 1, r.server.Executions("bad"), "nobody waits for it any more")
		})
	})
	t.Run("behind an outcome", func(t *testing.T) {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			o, bad, n, p := &outcomes{}, scripted.Echo("bad"), scripted.Echo("n"), scripted.ReplayEcho("p")
			bad.OnDecode = func(fdengine.Reply) { r.Derail(false) }
			r.together(func() { submitAll(t, r, o, bad, n, p) })
			pass(3 * time.Second)
			ok(t, o, bad, p)
			failed(t, o, n, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			require.Equal(t, 1, r.server.Executions("bad"))
			require.Equal(t, uint64(1), r.Stats().Cuts)
		})
	})
}

// The engine's own code panics with the lock held. On the real clock: who waits for a mutex stops the time of a
// bubble.
//
// Covers: S4-14, A-7
func TestAFaultThatHoldsTheLockGivesItBack(t *testing.T) {
	server := scripted.New(script{"n": always(scripted.Action{NoReply: true})}.options())
	network := &memnet.Network{}
	l, err := network.Listen("server")
	require.NoError(t, err)
	server.Serve(l)
	leaser := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) { return network.Dial(ctx, "mem", "server") })
	e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: leaser})
	require.NoError(t, err)
	res := make(chan error, 1)
	go func() { res <- e.Do(bg, scripted.Echo("n")) }()
	require.NoError(t, server.Until(bg, func() bool { return server.Executions("n") == 1 }))
	e.FaultHoldingTheLock()
	failsAs(t, <-res, carry.MaybeExecuted)
	require.NoError(t, e.Do(bg, scripted.Echo("after")))
	require.Equal(t, uint64(1), e.Stats().Cuts)
	require.NoError(t, e.Close())
	<-e.Done()
	leaser.Close()
	require.NoError(t, server.Close())
}

// The reader is in foreign code when its connection dies. The log belongs to it until it has been joined: nothing is
// decided and nothing goes out before.
//
// Covers: S4-4, E-3
func TestACutWaitsForTheReader(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		in, free := make(chan struct{}), make(chan struct{})
		o, a, b, c := &outcomes{}, scripted.Echo("a"), scripted.ReplayEcho("b"), scripted.ReplayEcho("c")
		a.OnDecode = func(fdengine.Reply) { close(in); <-free }
		r.together(func() { submitAll(t, r, o, a, b) })
		<-in
		r.server.CloseConns()
		synctest.Wait()
		submitAll(t, r, o, c) // its write finds the connection dead
		pass(3 * time.Second)
		require.Equal(t, uint64(1), r.Stats().Sessions)
		require.Equal(t, 1, r.leaser.Counts().Leases)
		require.Zero(t, o.count())
		close(free)
		pass(3 * time.Second)
		ok(t, o, a, b, c)
		require.Equal(t, uint64(2), r.Stats().Sessions)
		require.Equal(t, 1, r.server.Executions("a"))
	})
}

// free is a Leaser, a Limiter, an Observer, a Rerouter and a slog.Handler that reports where it is called.
type free struct {
	pool.Leaser
	logged
	see func(where string)
}

func (f *free) Lease(ctx context.Context) (*pool.Conn, error) {
	f.see("Lease")
	return f.Leaser.Lease(ctx)
}
func (f *free) Put(c *pool.Conn)               { f.see("Put"); f.Leaser.Put(c) }
func (f *free) Remove(c *pool.Conn, why error) { f.see("Remove"); f.Leaser.Remove(c, why) }
func (f *free) Allow() error                   { f.see("Allow"); return nil }
func (f *free) ReportResult(error)             { f.see("ReportResult") }
func (f *free) Observe(fdengine.Event)         { f.see("Observe") }
func (f *free) Reroute(why error, cs []*fdengine.Carry) {
	f.see("Reroute")
	for _, c := range cs {
		c.Fail(why)
	}
}

// Whoever is called holds nothing of the engine: else a hook that asks it for anything would hang.
//
// Covers: E-47
func TestTheLockIsFreeWhereverForeignCodeRuns(t *testing.T) {
	var r *rig
	var mu sync.Mutex
	seen := map[string]bool{}
	see := func(where string) {
		ok := r.LockIsFree()
		mu.Lock()
		defer mu.Unlock()
		seen[where] = true
		if !ok {
			t.Errorf("%s runs with the lock held", where)
		}
	}
	f := &free{see: see}
	f.then = func(slog.Record) { see("Logger") }
	o := setup{
		Server: script{
			"d": first(1, scripted.DropAfter()), "e": always(scripted.Refuse("ERR no")), "m": always(scripted.Refuse("MOVED 1 b:1")),
			"s": always(scripted.Delay(time.Minute)), "p": always(scripted.Action{PushBefore: scripted.PushFrame("x")}),
			"h": first(1, loading),
		}.options(),
		Engine: fdengine.Options{
			Leaser:   f,
			Protocol: judged(func() { see("Next") }, func() { see("Verdict") }),
			Limiter:  f, Observer: f, Rerouter: f, Logger: slog.New(f), ReadTimeout: -1, IdleRelease: 30 * time.Second,
			Gate:   func(context.Context, fdengine.Command) error { see("Gate"); return nil },
			OnPush: func([]byte) { see("OnPush") },
			Ping:   func() fdengine.Command { see("Ping"); return scripted.Ping() },
		},
	}
	bubble(t, o, func(t *testing.T, rr *rig) {
		f.Leaser = rr.leaser
		r = rr
		oc := &outcomes{then: func(_ fdengine.Command, err error) {
			why := "after an answer"
			var ce *fdengine.CallError
			if errors.As(err, &ce) {
				why = "after " + strings.TrimPrefix(errorClass(ce), "engine ")
			}
			see("Complete " + why)
		}}
		cmd := func(token string) *scripted.Cmd {
			c := scripted.Echo(token)
			c.OnDecode = func(fdengine.Reply) { see("DecodeReply") }
			return c
		}
		for _, token := range []string{"a", "e", "m", "p", "d"} {
			submitAll(t, r, oc, cmd(token))
			pass(time.Second)
		}
		st, h, b := r.Stream(), cmd("h"), cmd("b")
		r.together(func() { submitAll(t, st, oc, h, b) }) // h is decoded when b has been answered
		pass(time.Second)
		require.NoError(t, r.DoBatch(bg, []fdengine.Command{cmd("x"), cmd("y")}, nil))
		pass(40 * time.Second) // Put
		slow := cmd("s")
		slow.Traits.Timeout = time.Second
		submitAll(t, r, oc, slow)
		pass(2 * time.Second)
		submitAll(t, r, oc, cmd("s"))
		pass(time.Second)
		rr.server.CloseConns()
		pass(2 * time.Second)
		rr.leaser.OnLease = func(int) error { return pool.Permanent(errors.New("WRONGPASS")) }
		submitAll(t, r, oc, cmd("a"))
		pass(time.Second)
		rr.leaser.OnLease = func(int) error { return errors.New("down") }
		submitAll(t, r, oc, cmd("a"))
		synctest.Wait()
		require.NoError(t, r.Close())
		<-r.Done()
	})
	for _, where := range []string{
		"Lease", "Put", "Remove", "Allow", "ReportResult", "Observe", "Reroute", "Logger", "Next", "Verdict", "Gate", "OnPush", "Ping",
		"DecodeReply", "Complete after an answer", "Complete after maybe executed", "Complete after settle-by time passed",
		"Complete after no usable connection", "Complete after closed",
	} {
		require.True(t, seen[where], "%s was not called: %v", where, seen)
	}
}

// errorClass names the class of an error, or its fate when it has none.
func errorClass(ce *fdengine.CallError) string {
	if ce.Class != nil {
		return ce.Class.Error()
	}
	return ce.Fate.String()
}
