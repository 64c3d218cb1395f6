package lanes_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/lanes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// rig is Lanes in front of one scripted server for each lane, so that a test sees which lane a command went to. The
// servers stand for the connections that one server would see.
type rig struct {
	*lanes.Lanes
	t       *testing.T
	engines []*fdengine.Engine
	servers []*scripted.Server
	leasers []*scripted.Leaser
	net     *memnet.Network
}

// setup is what a test may change.
type setup struct {
	n      int
	server scripted.Options
	engine fdengine.Options
	closed int // this many servers, the last ones, do not listen at first
}

func name(lane int) string { return "server" + string(rune('a'+lane)) }

// bubble runs f in a synctest bubble. At the end all must be gone, the books even and the leases balanced.
func bubble(t *testing.T, o setup, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, net: &memnet.Network{}}
		for i := range o.n {
			s := scripted.New(o.server)
			r.servers = append(r.servers, s)
			if i < o.n-o.closed {
				r.listen(i)
			}
			l := scripted.NewLeaser(func(ctx context.Context) (net.Conn, error) { return r.net.Dial(ctx, "mem", name(i)) })
			r.leasers = append(r.leasers, l)
			eo := o.engine
			eo.Protocol, eo.Leaser, eo.Ping = scripted.NewProtocol, l, scripted.Ping
			e, err := fdengine.New(eo)
			require.NoError(t, err)
			r.engines = append(r.engines, e)
		}
		var err error
		r.Lanes, err = lanes.New(r.engines...)
		require.NoError(t, err)
		defer func() {
			r.freeze(false)
			_ = r.Close()
			if !t.Failed() {
				<-r.Done()
				r.even()
			}
			for i, l := range r.leasers {
				if !t.Failed() {
					require.NoError(t, l.Check())
				}
				l.Close()
				_ = r.servers[i].Close()
			}
		}()
		f(t, r)
	})
}

// listen lets the dials of a lane through.
func (r *rig) listen(lane int) {
	l, err := r.net.Listen(name(lane))
	require.NoError(r.t, err)
	go r.servers[lane].Serve(l)
}

// even checks the books of the sum.
func (r *rig) even() {
	s := r.Stats()
	require.Equal(r.t, s.Accepted, s.Settled, "%+v", s)
	require.Equal(r.t, s.Settled, s.Answered+s.NotSent+s.Maybe)
	require.Zero(r.t, s.QueueCommands+s.QueueBytes+s.InFlightCommands+s.InFlightBytes)
}

// freeze lets the servers execute nothing, or go on.
func (r *rig) freeze(on bool) {
	for _, s := range r.servers {
		s.FreezeExec(on)
	}
}

// connect has the first n lanes make their connection.
func (r *rig) connect(n int) {
	for _, e := range r.engines[:n] {
		require.NoError(r.t, e.Ping(bg))
	}
}

// order is what the server of a lane executed, in order.
func (r *rig) order(lane int) []string { return r.servers[lane].Order() }

// laneOf is the lane of a key.
func (r *rig) laneOf(key string) int {
	for i, e := range r.engines {
		if r.For([]byte(key)) == e {
			return i
		}
	}
	r.t.Fatal("no lane")
	return -1
}

// keysOf finds a key of each lane.
func (r *rig) keysOf() []string {
	keys := make([]string, len(r.engines))
	for i, found := 0, 0; found < len(keys); i++ {
		key := "key" + itoa(i)
		if at := r.laneOf(key); keys[at] == "" {
			keys[at] = key
			found++
		}
	}
	return keys
}

// keyed is a command with a key.
type keyed struct {
	*scripted.Cmd
	key string
	bad any    // what Key panics with
	on  func() // runs in Key
}

func (k keyed) Key() ([]byte, bool) {
	if k.on != nil {
		k.on()
	}
	if k.bad != nil {
		panic(k.bad)
	}
	return []byte(k.key), true
}

// of makes a command with a key.
func of(key, token string) keyed { return keyed{Cmd: scripted.Echo(token), key: key} }

// outcomes is a completion that keeps what it is told, in order.
type outcomes struct {
	mu struct {
		sync.Mutex
		errs   []error
		tokens []string
	}
}

func (o *outcomes) Complete(cmd fdengine.Command, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	token := ""
	switch c := cmd.(type) {
	case keyed:
		token = c.Token
	case *scripted.Cmd:
		token = c.Token
	}
	o.mu.tokens = append(o.mu.tokens, token)
	o.mu.errs = append(o.mu.errs, err)
}

func (o *outcomes) all() ([]string, []error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.mu.tokens...), append([]error(nil), o.mu.errs...)
}

// pass lets the fake time d go by and waits until everybody is idle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func itoa(i int) string {
	if i >= 10 {
		return itoa(i/10) + itoa(i%10)
	}
	return string(rune('0' + i))
}
