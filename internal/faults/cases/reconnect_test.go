package cases_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// tap is the server's end of a connection that keeps what was read from it.
type tap struct {
	*memnet.Conn
	mu struct {
		sync.Mutex
		got []byte
	}
}

func (c *tap) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.got = append(c.mu.got, b[:n]...)
	return n, err
}

func (c *tap) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.mu.got)
}

// taps makes an Accept for a setup, and a function that returns the i-th connection's tap.
func taps() (accept func(int, *memnet.Conn) net.Conn, at func(i int) *tap) {
	var mu sync.Mutex
	var all []*tap
	accept = func(_ int, c *memnet.Conn) net.Conn {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, &tap{Conn: c})
		return all[len(all)-1]
	}
	at = func(i int) *tap {
		mu.Lock()
		defer mu.Unlock()
		return all[i]
	}
	return accept, at
}

var reset = memnet.Cut{Reset: true, Drop: true}

// C04 a: after a reconnect the old socket's write buffer went out again, although its callers had been told.
// https://github.com/redis/node-redis/issues/601 https://github.com/nats-io/nats.go/issues/86
func TestNothingOfADeadConnectionsBufferGoesOutAgain(t *testing.T) {
	const size = 256 << 10
	bubble(t, setup{Pipe: memnet.Options{ToServer: 2*size + size/2}}, func(t *testing.T, r *rig) {
		require.NoError(t, r.run(bg, once("warm")))
		r.server.FreezeReads(true)
		was := r.conn(0).Out().Accepted()
		var cmds []*scripted.Cmd
		for _, token := range []string{"A", "B", "C", "D"} {
			c := once(token)
			c.Args = []string{strings.Repeat(token, size)}
			cmds = append(cmds, c)
		}
		r.submit(commands(cmds)...)
		synctest.Wait()
		frame := int64(len(scripted.AppendRequest(nil, "ECHO", "A", cmds[0].Args[0])))
		whole := int((r.conn(0).Out().Accepted() - was) / frame)
		require.Equal(t, 2, whole, "A and B have left whole, C in part")
		r.conn(0).Out().CutAfter(0, reset)
		tally.Cut(1)
		r.server.FreezeReads(false)
		require.NoError(t, r.run(bg, once("e")))
		for _, c := range cmds[:whole] {
			r.failed(t, c, carry.MaybeExecuted)
		}
		r.ok(t, commands(cmds[whole:])...)
		require.Equal(t, []string{"C", "D", "e"}, r.server.ConnTokens(1))
		for _, req := range r.server.Requests(1)[1:3] {
			require.Equal(t, strings.Repeat(req.Token(), size), req.Args[2], "whole")
		}
	})
}

// C04 a on real sockets, whose buffers nobody can look into: what is said to be NotSent, or goes out again, may be
// any number of them, but never one that the server had whole.
func TestNothingOfADeadSocketsBufferGoesOutAgain(t *testing.T) {
	const size = 1 << 20
	s, addr, err := scripted.ListenTCP(scripted.Options{})
	require.NoError(t, err)
	e, b, l := tcpEngine(t, addr, fdengine.Options{})
	require.NoError(t, b.do(bg, "main", e, once("warm")))
	s.FreezeReads(true)
	var cmds []*scripted.Cmd
	for i := range 16 {
		c := once(fmt.Sprintf("big%d", i))
		c.Args = []string{strings.Repeat("x", size)}
		cmds = append(cmds, c)
		require.NoError(t, b.submit(bg, "main", e, c))
	}
	// The writer is stuck when the kernel has taken what it takes; a write in progress counts no command.
	await(t, func() bool { st := e.Stats(); return st.Sent > 1 && st.QueueCommands > 0 && st.QueueCommands < 16 })
	s.ResetConns()
	tally.Cut(1)
	s.FreezeReads(false)
	require.NoError(t, b.do(bg, "main", e, once("e")))
	b.wait()
	maybe := b.count(func(_ string, err error) bool { return err != nil })
	require.Positive(t, maybe, "some had left")
	require.Less(t, maybe, 16, "not all had left")
	onNew := s.ConnTokens(1)
	require.Equal(t, 16-maybe+1, len(onNew))
	for _, c := range cmds {
		if err := b.err(t, c); err != nil {
			fails(t, err, carry.MaybeExecuted)
			require.NotContains(t, onNew, c.Token)
		}
	}
	tcpDone(t, e, b, l, s)
}

// C04 b: a unit that was half written on one connection was carried over and ended on the next.
// https://github.com/nats-io/nats.c/pull/280
func TestAHalfWrittenCommandBeginsAnewOnTheNextConnection(t *testing.T) {
	value := strings.Repeat("0123456789abcdef", tally.Count(1<<14, 1<<16)) // 256 KB, 1 MB
	total := len(scripted.AppendRequest(nil, "PING")) + len(scripted.AppendRequest(nil, "SET", "k", value))
	rnd := tally.Rand(4)
	offsets := []int{1, 13, 14, 15, 1000, total - 1, total}
	for range tally.Count(13, 193) {
		offsets = append(offsets, rnd.IntN(total))
	}
	for _, cut := range offsets {
		accept, at := taps()
		onDial := func(n int, c, _ *memnet.Conn) error {
			if n == 1 {
				c.Out().CutAt(int64(cut), reset)
			}
			return nil
		}
		bubble(t, setup{OnDial: onDial, Accept: accept}, func(t *testing.T, r *rig) {
			set := again("k", 1)
			set.Verb, set.Args = "SET", []string{value}
			require.NoError(t, r.run(bg, set))
			last := r.server.Conns() - 1
			require.Equal(t, 1, last, "cut at %d: one more connection", cut)
			user := at(last).bytes()[len("*1\r\n$4\r\nPING\r\n"):]
			require.True(t, bytes.HasPrefix(user, []byte("*3\r\n")), "cut at %d: a frame's start, not the rest of one: %.20q", cut, user)
			log := r.server.ConnLog(last)
			require.Len(t, log, 2)
			require.Equal(t, value, log[1][2])
			require.LessOrEqual(t, len(at(0).bytes()), cut)
		})
		tally.Cut(1)
	}
}

// C05: a command submitted at the very moment of the disconnect was in no queue, or was entered after the queue had
// been flushed and shifted all later replies.
// https://github.com/redis/node-redis/issues/1593 https://github.com/redis/lettuce/issues/277
func TestACommandSubmittedWhileTheConnectionDiesIsNeitherLostNorDoubled(t *testing.T) {
	rounds := tally.Count(150, 1500)
	bubble(t, setup{Engine: fdengine.Options{BackoffMin: time.Millisecond, BackoffMax: 4 * time.Millisecond}}, func(t *testing.T, r *rig) {
		rnd := tally.Rand(5)
		require.NoError(t, r.run(bg, once("warm")))
		for round := range rounds {
			if round%2 == 0 {
				lane := r.last().Out()
				if rnd.IntN(2) == 0 {
					lane = r.last().In()
				}
				lane.CutAfter(rnd.Int64N(800), reset)
			} else {
				r.last().Out().CutAfter(0, reset) // while idle
			}
			tally.Cut(1)
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() { raceTokens(t, r.book, r.Engine, g, round, 4) })
			}
			wg.Wait()
			require.Zero(t, r.Stats().InFlightCommands)
		}
	})
}

// raceTokens runs n commands one after the other, half of them NoRetry.
func raceTokens(t *testing.T, b *book, e *fdengine.Engine, g, round, n int) {
	who := fmt.Sprintf("g%d", g)
	for i := range n {
		token := fmt.Sprintf("%s-%d-%d", who, round, i)
		c := once(token)
		if i%2 == 0 {
			c = again(token, 5)
		}
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		err := b.do(ctx, who, e, c)
		cancel()
		if err != nil && (i%2 == 0 || !isMaybe(err)) {
			t.Errorf("%s: %v", token, err)
		}
	}
}

func isMaybe(err error) bool { return fdengine.FateOf(err) == carry.MaybeExecuted }

// C05 on real sockets.
func TestACommandSubmittedWhileTheSocketIsResetIsNeitherLostNorDoubled(t *testing.T) {
	s, addr, err := scripted.ListenTCP(scripted.Options{})
	require.NoError(t, err)
	e, b, l := tcpEngine(t, addr, fdengine.Options{BackoffMin: time.Millisecond, BackoffMax: 4 * time.Millisecond})
	rnd := tally.Rand(55)
	for round := range tally.Count(50, 500) {
		arrived := s.Arrived() + rnd.IntN(40)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if round%2 == 0 { // in the middle; else before anything of this round
				ctx, cancel := context.WithCancel(bg)
				go func() { <-stop; cancel() }()
				_ = s.Until(ctx, func() bool { return s.Arrived() >= arrived })
			}
			s.ResetConns()
			tally.Cut(1)
		})
		var callers sync.WaitGroup
		for g := range 8 {
			callers.Go(func() { raceTokens(t, b, e, g, round, 6) })
		}
		callers.Wait()
		close(stop)
		wg.Wait()
	}
	require.Zero(t, e.Stats().InFlightCommands)
	tcpDone(t, e, b, l, s)
}
