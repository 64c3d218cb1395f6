package lanes_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/lanes"
)

// real is Lanes on real connections to a server that answers +OK to everything.
func real(tb testing.TB, n int) *lanes.Lanes {
	s, err := scripted.NewCounting("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	l := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	})
	var engines []*fdengine.Engine
	for range n {
		e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: l, Ping: scripted.Ping})
		require.NoError(tb, err)
		engines = append(engines, e)
	}
	all, err := lanes.New(engines...)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_ = all.Close()
		<-all.Done()
		l.Close()
		_ = s.Close()
	})
	require.NoError(tb, all.Ping(bg))
	return all
}

// cheap is a command that allocates nothing.
type cheap struct {
	enc []byte
	key []byte
}

func (c *cheap) AppendRequest(dst []byte) ([]byte, error) { return append(dst, c.enc...), nil }
func (c *cheap) DecodeReply(fdengine.Reply) error         { return nil }
func (c *cheap) Key() ([]byte, bool)                      { return c.key, c.key != nil }

func newCheap(key string) *cheap {
	c := &cheap{enc: scripted.AppendRequest(nil, "SET", key, "v")}
	if key != "" {
		c.key = []byte(key)
	}
	return c
}

// waiter is a completion that allocates nothing.
type waiter chan struct{}

func (w waiter) Complete(fdengine.Command, error) { w <- struct{}{} }

// Covers: E-32
func TestAllocNothingPerDoOrSubmitAndAlmostNothingPerBatch(t *testing.T) {
	if raced {
		t.Skip("under the race detector pools forget")
	}
	s := real(t, 4)
	keys := []*cheap{newCheap("a"), newCheap("b"), newCheap("c"), newCheap("d"), newCheap("e"), newCheap("")}
	cmds := make([]fdengine.Command, 200)
	for i := range cmds {
		cmds[i] = keys[i%len(keys)]
	}
	errs := make([]error, len(cmds))
	w := make(waiter, len(keys))
	for name, tc := range map[string]struct {
		most float64
		f    func()
	}{
		"Do": {0, func() {
			for _, c := range keys {
				_ = s.Do(bg, c)
			}
		}},
		"Submit": {0, func() {
			for _, c := range keys {
				_ = s.Submit(bg, c, w)
			}
			for range keys {
				<-w
			}
		}},
		"TrySubmit": {0, func() { _ = s.TrySubmit(keys[0], w); <-w }},
		"SubmitBatch": {0, func() {
			_, _ = s.SubmitBatch(bg, cmds[:len(keys)], w)
			for range keys {
				<-w
			}
		}},
		"DoBatch": {2, func() { _ = s.DoBatch(bg, cmds, errs) }}, // of 200
	} {
		t.Run(name, func(t *testing.T) {
			for range 2000 {
				tc.f()
			}
			require.LessOrEqual(t, testing.AllocsPerRun(2000, tc.f), tc.most)
		})
	}
}

// Covers: E-32
func TestManyCallersOnManyLanesUnderTheRaceDetector(t *testing.T) {
	s := real(t, 4)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			w := make(waiter, 100)
			for i := range 200 {
				key := ""
				if i%3 > 0 {
					key = itoa(g) + itoa(i%7)
				}
				c := newCheap(key)
				if err := s.Do(bg, c); err != nil {
					t.Error(err)
				}
				if err := s.Submit(bg, c, w); err != nil {
					t.Error(err)
				}
				<-w
				if err := s.DoBatch(bg, []fdengine.Command{newCheap("x" + key), newCheap(""), newCheap("y" + key)}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	sum := s.Stats()
	require.EqualValues(t, 8*200*5+4, sum.Accepted)
	require.Equal(t, sum.Accepted, sum.Answered)
}
