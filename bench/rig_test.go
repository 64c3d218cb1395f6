package bench

import (
	"context"
	"net"
	"os/exec"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// doer is what is measured: an engine or a client on top of it.
type doer interface {
	Do(ctx context.Context, cmd fdengine.Command) error
	Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error
	DoBatch(ctx context.Context, cmds []fdengine.Command, errs []error) error
}

// rig is one doer and its engine's statistics.
type rig struct {
	doer
	stats func() fdengine.Stats
}

// counting is an engine on a connection to a server that answers +OK to everything.
func counting(tb testing.TB) rig {
	tb.Helper()
	s, err := scripted.NewCounting("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	l := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	})
	tb.Cleanup(l.Close)
	e, err := fdengine.New(fdengine.Options{
		Leaser:   l,
		Protocol: func() fdengine.Protocol { return redis.NewProtocol(s.Addr()) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = e.Close()
		<-e.Done()
	})
	return rig{e, e.Stats}
}

// real is a client of a redis-server.
func real(tb testing.TB) rig {
	tb.Helper()
	s := testserver.StartRedis(tb, testserver.RedisOptions{})
	c, err := redis.New(redis.Options{Addr: s.Addr()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = c.Close()
		<-c.Done()
	})
	return rig{c, func() fdengine.Stats { return c.Stats().Engine }}
}

func haveRedis() bool {
	_, err := exec.LookPath("redis-server")
	return err == nil
}

// warm makes the connection and the pools that the first commands pay for.
func (r rig) warm(tb testing.TB) {
	tb.Helper()
	for range 2000 {
		if err := r.Do(context.Background(), redis.Set("warm", "up")); err != nil {
			tb.Fatal(err)
		}
	}
}

// set is a SET of size bytes, to be sent again and again.
func set(size int) *redis.Cmd {
	return redis.Set("bench:key:000001", make([]byte, size))
}

// tally is the completion of a group of commands: it tells when all of them are done.
type tally struct {
	left   atomic.Int32
	failed atomic.Pointer[error]
	done   chan struct{} // cap 1
}

func newTally() *tally { return &tally{done: make(chan struct{}, 1)} }

// Complete implements fdengine.Completion.
func (t *tally) Complete(_ fdengine.Command, err error) {
	if err != nil {
		first := err // so that only a failure puts it on the heap
		t.failed.Store(&first)
	}
	if t.left.Add(-1) == 0 {
		t.done <- struct{}{}
	}
}

// submit sends cmds, of which each is told to t.
func (t *tally) submit(d doer, cmds []fdengine.Command) error {
	t.left.Store(int32(len(cmds)))
	for _, c := range cmds {
		if err := d.Submit(context.Background(), c, t); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when all are done.
func (t *tally) wait() error {
	<-t.done
	if err := t.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// raced says whether the race detector is on. It makes sync.Pool forget, which shows as allocations.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

const patience = 30 * time.Second
