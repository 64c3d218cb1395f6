package cuts

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// kit is one binding with the server for it. dialect is asked before build, once per story.
type kit struct {
	name    string
	dialect func() dialect
	build   func(net *memnet.Network, v variant) (client, *pipeline, error)
}

func kits() []kit { return []kit{redisKit(2), redisKit(3), beanstalkKit()} }

const budget = 1

var engineOptions = fdengine.Options{Budget: budget, BackoffMax: 20 * time.Millisecond}

// variant says which commands of the pipeline may run again, and which of them comes first.
type variant struct {
	rotate                               int
	pieceReplay, ghostReplay, flowReplay bool
}

// variants is how many there are.
const variants = 10

// variantOf spreads the classes over the rotations: in two consecutive rounds of five each kind has both classes at
// each position.
func variantOf(i int) variant {
	odd := i/5%2 == 1
	return variant{rotate: i % 5, pieceReplay: odd != (i%2 == 0), ghostReplay: odd, flowReplay: odd != (i%3 == 0)}
}

type role int

const (
	plain   role = iota
	leaves       // its caller leaves when it is on the wire
	streams      // it is on a Stream
)

// call is one command: what it is, and what became of it.
type call struct {
	name   string
	cmd    fdengine.Command
	role   role
	replay bool
	enc    []byte       // what it is on the wire
	tokens []string     // what the server notes when it is carried out
	own    func() error // says why what it was answered with is not its own

	mu struct {
		sync.Mutex
		times int
	}
	err error
}

// Complete implements fdengine.Completion.
func (c *call) Complete(_ fdengine.Command, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.times++
	c.err = err
}

func (c *call) settled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.times
}

// pipeline is the five commands that are cut, and two that come when it is over: another caller's, and the next of
// the Stream.
type pipeline struct {
	five        []*call
	after, next *call
}

func (p *pipeline) rotate(n int) { p.five = slices.Concat(p.five[n:], p.five[:n]) }

func (p *pipeline) all() []*call { return append(slices.Clone(p.five), p.after, p.next) }

// side is what is cut.
type side int

const (
	nothing   side = iota
	setup          // what the client sends, counted from the start: inside the handshake
	requests       // what it sends, counted from the end of the handshake
	responses      // what the server answers, counted from the start
)

// cut is one end of a connection, at a byte.
type cut struct {
	side side
	at   int
}

// plan is one story: how the first connection ends, and perhaps the second.
type plan struct {
	variant
	cut
	second cut // at counts from the start of the connection
	how    memnet.Cut
	vague  bool // the connection cannot tell how far a failed write came
	read   int  // bytes that the server reads at a time
}

func (p plan) String() string {
	type plain plan
	return fmt.Sprintf("%+v", plain(p))
}

// story is what a plan led to.
type story struct {
	plan
	*pipeline
	conns   []*served
	client  client
	open    int   // connections that the client left open
	taken   int64 // bytes of answers that the client read on the first connection
	stats   fdengine.Stats
	flowing bool // the first connection was the one on which the ghost's caller left
}

// tell carries a plan out, inside a bubble.
func tell(t *testing.T, k kit, p plan) (s *story) {
	if p.read == 0 {
		p.read = 64 << 10
	}
	synctest.Test(t, func(t *testing.T) {
		s = &story{plan: p}
		w := &witness{dialect: k.dialect(), read: p.read}
		frozen, submitted, thaw := make(chan *served, 1), make(chan struct{}), make(chan struct{})
		thawed := sync.OnceFunc(func() { close(thaw) })
		first := true
		w.greeted = func(c *served) <-chan struct{} {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !first {
				return nil
			}
			first = false
			if p.side == requests {
				c.nc.In().SetBuffer(orNone(p.at))
			}
			frozen <- c
			return thaw
		}
		network := &memnet.Network{OnDial: func(n int, client, server *memnet.Conn) error {
			<-submitted
			p.arm(n, client, server)
			return nil
		}}
		l, err := network.Listen("server")
		require.NoError(t, err)
		w.serve(l)
		s.client, s.pipeline, err = k.build(network, p.variant)
		require.NoError(t, err)
		defer func() { // a failed test must not leave goroutines, or the bubble hides why it failed
			if t.Failed() {
				thawed()
				_ = s.client.Close()
				w.wait(l)
				<-s.client.Done()
			}
		}()

		leave := s.submit(t)
		close(submitted)
		c := <-frozen
		s.flowing = c.index == 0
		synctest.Wait()
		leave()
		synctest.Wait()
		if p.side == requests {
			c.nc.In().CutAfter(0, p.how)
		}
		thawed()
		s.finish(t)
		s.open = network.Open()
		s.conns = w.wait(l)
		s.taken = s.conns[0].nc.Out().Taken()
		tally.Scenario(1)
		tally.Cut(p.cuts())
	})
	return s
}

// cuts is how many connections the plan ends.
func (p plan) cuts() (n int) {
	for _, c := range []cut{p.cut, p.second} {
		if c.side != nothing {
			n++
		}
	}
	return n
}

// arm prepares a connection, numbered from 1, for its end.
func (p plan) arm(n int, client, server *memnet.Conn) {
	c := p.second
	if n == 1 {
		c = p.cut
	}
	if n <= 2 && p.vague {
		client.SetExactWrite(false)
	}
	switch {
	case n > 2:
	case c.side == setup:
		client.Out().CutAt(int64(c.at), p.how)
	case c.side == requests && n == 2:
		client.Out().CutAt(int64(c.at), p.how)
	case c.side == responses:
		server.Out().CutAt(int64(c.at), p.how)
	}
}

// orNone makes a size for SetBuffer.
func orNone(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// submit queues the five, in order; leave lets the one caller go and returns when he has gone.
func (s *story) submit(t *testing.T) (leave func()) {
	flow := s.client.Stream()
	for _, c := range s.five {
		switch c.role {
		case plain:
			require.NoError(t, s.client.Submit(context.Background(), c.cmd, c))
		case streams:
			require.NoError(t, flow.Submit(context.Background(), c.cmd, c))
			s.next.cmd = onStream{flow, s.next.cmd}
		case leaves:
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				c.Complete(c.cmd, s.client.Do(ctx, c.cmd))
				close(done)
			}()
			synctest.Wait() // it is queued
			leave = func() { cancel(); <-done }
		}
	}
	return leave
}

// onStream remembers the Stream of a command that is submitted later.
type onStream struct {
	flow *fdengine.Stream
	fdengine.Command
}

// finish waits for all outcomes, sends what comes after, and ends the client.
func (s *story) finish(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range s.five {
		for c.settled() == 0 {
			require.NoError(t, ctx.Err(), "%v: %s never settled", s.plan, c.name)
			<-time.After(time.Millisecond)
		}
	}
	s.after.Complete(nil, s.client.Do(ctx, s.after.cmd))
	next := s.next.cmd.(onStream)
	s.next.Complete(nil, next.flow.Do(ctx, next.Command))
	_, err := s.client.Shutdown(ctx)
	require.NoError(t, err, "%v", s.plan)
	<-s.client.Done()
	s.stats = s.client.Engine().Stats()
}
