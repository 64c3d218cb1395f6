package hostile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
)

const (
	mib  = 1 << 20
	slop = 100 * time.Millisecond // the engine's ticks, and backoffs
)

// attack is one way to be bad, and what it may cost.
type attack struct {
	welcome func(v *visit, m *meter)            // in the handshake of the first connection
	evil    func(v *visit, r request, m *meter) // in place of the answer to the second command on it
	within  time.Duration                       // of virtual time, until that command has its outcome
	heap    int64                               // bytes; 0 = 4 MiB
	options fdengine.Options
	dial    func(n int, client, server *memnet.Conn)
	secure  bool
	check   func(t *testing.T, err error) // of that command; nil: it succeeds, sent again or not
	calm    bool                          // nothing of the others is lost either
	size    int                           // bytes of each command
}

// call is one command and what became of it.
type call struct {
	token  string
	cmd    fdengine.Command
	own    func() error
	replay bool
	times  int
	err    error
	took   time.Duration
	since  time.Time
	done   chan struct{}
}

// Complete implements fdengine.Completion.
func (c *call) Complete(_ fdengine.Command, err error) {
	c.times++
	c.err, c.took = err, time.Since(c.since)
	if c.times == 1 {
		close(c.done)
	}
}

func (k kit) call(token string, replay bool, size int) *call {
	c := &call{token: token, replay: replay, since: time.Now(), done: make(chan struct{})}
	c.cmd, c.own = k.command(token, replay, size)
	return c
}

// run carries an attack out: four commands go out together, the second meets it; a fifth comes when it is over.
func (a attack) run(t *testing.T, k kit) {
	synctest.Test(t, func(t *testing.T) {
		submitted := make(chan struct{})
		var first *memnet.Conn
		network := &memnet.Network{OnDial: func(n int, client, server *memnet.Conn) error {
			<-submitted
			if n == 1 {
				first = client
			}
			if a.dial != nil {
				a.dial(n, client, server)
			}
			return nil
		}}
		l, err := network.Listen("server:1")
		require.NoError(t, err)
		a.options.BackoffMax = 20 * time.Millisecond
		c, err := k.open(network, a.secure, a.options)
		require.NoError(t, err)
		m := newMeter()
		p := &peer{honest: k.honest(), turn: 2}
		if a.secure {
			p.tls = certified()
		}
		if a.evil != nil {
			p.evil = func(v *visit, r request) { a.evil(v, r, m) }
		} else {
			p.turn = 0
		}
		if a.welcome != nil {
			p.welcome = func(v *visit) { a.welcome(v, m) }
		}
		p.serve(l)
		ended := false
		defer func() { // a failed test must not leave goroutines, or the bubble hides why it failed
			if !ended {
				_ = c.Close()
				p.wait(l)
				<-c.Done()
			}
		}()

		good, victim := k.call("good", false, a.size), k.call("victim", false, a.size)
		behind, again := k.call("behind", false, a.size), k.call("again", true, a.size)
		for _, x := range []*call{good, victim, behind, again} {
			require.NoError(t, c.Submit(context.Background(), x.cmd, x))
		}
		close(submitted)
		over, watched := make(chan struct{}), make(chan struct{})
		go func() { // twice a second of virtual time
			defer close(watched)
			t := time.NewTicker(500 * time.Millisecond)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					m.sample()
				case <-over:
					return
				}
			}
		}()
		for _, x := range []*call{good, victim, behind, again} {
			<-x.done
		}
		m.sample()
		close(over)
		<-watched
		late := k.call("late", false, a.size)
		late.Complete(nil, c.Do(context.Background(), late.cmd))
		firstOver := first.Closed()
		_, err = c.Shutdown(context.Background())
		require.NoError(t, err)
		<-c.Done()
		open := network.Open()
		visits, ran := p.wait(l)
		ended = true

		require.LessOrEqual(t, victim.took, a.within+slop)
		if a.check == nil {
			require.NoError(t, victim.err)
		} else {
			require.Error(t, victim.err)
			a.check(t, victim.err)
		}
		if !a.calm {
			require.ErrorIs(t, behind.err, fdengine.ErrMaybeExecuted, "it was on the wire")
		}
		for _, x := range []*call{good, victim, behind, again, late} {
			require.Equal(t, 1, x.times, x.token)
			limit := 1
			if x.replay {
				limit = 4
			}
			require.LessOrEqual(t, ran[x.token], limit, x.token)
			switch {
			case x.err == nil:
				require.NoError(t, x.own(), x.token)
				require.Positive(t, ran[x.token], x.token)
			case x == victim:
			case x == behind && !a.calm:
			default:
				require.NoError(t, x.err, x.token)
			}
			if fdengine.FateOf(x.err) == carry.NotSent {
				require.Zero(t, ran[x.token], x.token)
			}
		}
		require.Len(t, visits, 2)
		require.True(t, firstOver, "the connection was ended before the next command was answered")
		require.Zero(t, open)
		s := c.Engine().Stats()
		require.Equal(t, s.Accepted, s.Settled)
		require.Zero(t, s.Panics)
		require.Less(t, m.grown(), max(a.heap, 4*mib), "bytes more on the heap than before")
		tally.Scenario(1)
		tally.Cut(1)
	})
}

// The errors that the command in the way may end with.

// framing: what came cannot be framed; nobody knows whether the command ran.
func framing(t *testing.T, err error) {
	var fe *fdengine.FramingError
	require.ErrorAs(t, err, &fe)
	maybe(t, err)
}

// maybe: nobody knows whether the command ran.
func maybe(t *testing.T, err error) {
	require.ErrorIs(t, err, fdengine.ErrMaybeExecuted)
	require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err))
}

// late: the answer did not come in time.
func late(t *testing.T, err error) {
	var timeout interface{ Timeout() bool }
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	maybe(t, err)
}

// tooLarge: the server has answered, with more than is taken.
func tooLarge(t *testing.T, err error) {
	require.ErrorIs(t, err, fdengine.ErrTooLarge)
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
}

// What a peer may do.

// saying answers with raw bytes and nothing more.
func saying(raw string) func(v *visit, r request, m *meter) {
	return func(v *visit, _ request, m *meter) {
		v.say(raw)
		m.sample()
	}
}

// babbling answers with the start and then with more of the same without end: a burst of 64 KiB each fifty milliseconds.
func babbling(start, more string) func(v *visit, r request, m *meter) {
	burst := more
	for len(burst) < 64<<10 {
		burst += burst
	}
	return func(v *visit, _ request, m *meter) {
		for ok := v.say(start); ok; {
			ok = v.say(burst) && v.pause(10*time.Millisecond)
		}
	}
}

// dripping answers one byte a second.
func dripping(raw string) func(v *visit, r request, m *meter) {
	return func(v *visit, _ request, _ *meter) {
		for _, b := range []byte(raw) {
			if !v.say(string(b)) || !v.pause(time.Second) {
				return
			}
		}
	}
}

// inWelcome makes of one of these what is done in the handshake.
func inWelcome(f func(v *visit, r request, m *meter)) func(v *visit, m *meter) {
	return func(v *visit, m *meter) { f(v, request{}, m) }
}
