package scripted_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server and a network to dial it on, inside a bubble.
type rig struct {
	*scripted.Server
	net *memnet.Network
}

func inBubble(t *testing.T, o scripted.Options, f func(t *testing.T, r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := rig{scripted.New(o), &memnet.Network{}}
		l, err := r.net.Listen("s:1")
		require.NoError(t, err)
		r.Serve(l)
		defer func() { require.NoError(t, r.Close()) }()
		f(t, r)
	})
}

func (r rig) dial(t *testing.T) *memnet.Conn {
	t.Helper()
	c, err := r.net.Dial(t.Context(), "tcp", "s:1")
	require.NoError(t, err)
	return c.(*memnet.Conn)
}

// send writes requests whose words are separated by spaces, in one write.
func send(t *testing.T, c net.Conn, requests ...string) {
	t.Helper()
	var raw []byte
	for _, q := range requests {
		raw = scripted.AppendRequest(raw, strings.Fields(q)...)
	}
	_, err := c.Write(raw)
	require.NoError(t, err)
}

func expect(t *testing.T, c net.Conn, raw string) {
	t.Helper()
	buf := make([]byte, len(raw))
	n, err := io.ReadFull(c, buf)
	require.NoError(t, err, "got %q", buf[:n])
	require.Equal(t, raw, string(buf))
}

func expectEnd(t *testing.T, c net.Conn, want error) {
	t.Helper()
	n, err := c.Read(make([]byte, 64))
	require.ErrorIs(t, err, want)
	require.Zero(t, n)
}

// silent says that nothing can be read from c now.
func silent(t *testing.T, c *memnet.Conn) {
	t.Helper()
	synctest.Wait()
	require.Zero(t, c.In().Buffered(), "unexpected bytes")
}

func TestARequestIsExecutedCountedLoggedAndAnswered(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		a, b := r.dial(t), r.dial(t)
		send(t, a, "PING", "ECHO one x y", "echo two")
		expect(t, a, "+PONG\r\n$3\r\none\r\n$3\r\ntwo\r\n")
		time.Sleep(time.Second)
		send(t, b, "ECHO one")
		expect(t, b, "$3\r\none\r\n")

		require.Equal(t, []string{"one", "two", "one"}, r.Order())
		require.Equal(t, 2, r.Executions("one"))
		require.Equal(t, map[string]int{"one": 2, "two": 1}, r.AllExecutions())
		require.Equal(t, 3, r.Executed())
		require.Zero(t, r.Executions("three"))
		require.Equal(t, 2, r.Conns())
		require.Equal(t, 2, r.OpenConns())
		require.Equal(t, 4, r.Arrived())
		require.Equal(t, [][]string{{"PING"}, {"ECHO", "one", "x", "y"}, {"echo", "two"}}, r.ConnLog(0))
		require.Equal(t, []string{"one", "two"}, r.ConnTokens(0))
		first, last := r.Requests(0)[1], r.Requests(1)[0]
		require.Equal(t, time.Second, last.At.Sub(first.At))
		require.EqualValues(t, 4, last.Arrival)
		require.Equal(t, 1, first.Seq)
		require.Equal(t, len(scripted.AppendRequest(nil, "ECHO", "one", "x", "y")), first.Size)
		require.Nil(t, r.Requests(2))
		require.Equal(t, 2, r.MaxUnanswered())
	})
}

func TestARequestThatArrivesByteByByteIsOneRequest(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		c.Out().Drip(time.Millisecond)
		send(t, c, "ECHO slow", "ECHO too")
		expect(t, c, "$4\r\nslow\r\n$3\r\ntoo\r\n")
	})
}

func TestACutRequestIsNotExecuted(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		raw := scripted.AppendRequest(nil, "ECHO", "whole")
		whole := len(raw)
		raw = scripted.AppendRequest(raw, "ECHO", "short")
		c.Out().CutAt(int64(len(raw)-1), memnet.Cut{})
		_, err := c.Write(raw)
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Greater(t, len(raw), whole)
		synctest.Wait()
		require.Equal(t, []string{"whole"}, r.Order())
		require.Zero(t, r.OpenConns())
	})
}

func TestEachActionDoesWhatItSays(t *testing.T) {
	for _, tc := range []struct {
		name     string
		action   scripted.Action
		wire     string // what the client reads for "ECHO a", "ECHO b" when a draws the action
		end      error  // then; nil: the connection lives and is silent
		executed string
	}{
		{"default", scripted.Action{}, "$1\r\na\r\n$1\r\nb\r\n", nil, "a b"},
		{"reply", scripted.Reply(":7\r\n"), ":7\r\n$1\r\nb\r\n", nil, "a b"},
		{"refuse", scripted.Refuse("LOADING soon"), "-LOADING soon\r\n$1\r\nb\r\n", nil, "b"},
		{"drop before", scripted.DropBefore(), "", io.EOF, ""},
		{"drop after", scripted.DropAfter(), "", io.EOF, "a"},
		{"drop by reset", scripted.Action{DropAfter: true, Reset: true}, "", syscall.ECONNRESET, "a"},
		{"answer then close", scripted.Action{Close: true}, "$1\r\na\r\n", io.EOF, "a"},
		{"refuse then close", scripted.Action{Refuse: "ERR max", Close: true}, "-ERR max\r\n", io.EOF, ""},
		{"half reply", scripted.HalfReply(), "$1\r", io.EOF, "a"},
		{"stall", scripted.Stall(), "", nil, "a"},
		{"mute", scripted.Mute(), "", nil, "a b"},
		{"no reply", scripted.Action{NoReply: true}, "$1\r\nb\r\n", nil, "a b"},
		{"surplus", scripted.Surplus("+twice\r\n"), "$1\r\na\r\n+twice\r\n$1\r\nb\r\n", nil, "a b"},
		{"pushes", scripted.Action{PushBefore: scripted.PushFrame("x"), PushAfter: []byte("|\n")},
			">1\r\n$1\r\nx\r\n$1\r\na\r\n|\n$1\r\nb\r\n", nil, "a b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			script := func(c *scripted.ServerConn, q scripted.Request) scripted.Action {
				if q.Token() == "a" {
					return tc.action
				}
				return scripted.Action{}
			}
			inBubble(t, scripted.Options{Script: script}, func(t *testing.T, r rig) {
				c := r.dial(t)
				send(t, c, "ECHO a", "ECHO b")
				expect(t, c, tc.wire)
				if tc.end != nil {
					expectEnd(t, c, tc.end)
				} else {
					silent(t, c)
					require.Equal(t, 1, r.OpenConns())
				}
				require.Equal(t, tc.executed, strings.Join(r.Order(), " "))
			})
		})
	}
}

func TestADelayHoldsUpTheRequestsBehindIt(t *testing.T) {
	script := func(c *scripted.ServerConn, q scripted.Request) scripted.Action {
		if q.Token() == "slow" {
			return scripted.Delay(time.Second)
		}
		return scripted.Action{}
	}
	inBubble(t, scripted.Options{Script: script}, func(t *testing.T, r rig) {
		c := r.dial(t)
		start := time.Now()
		send(t, c, "ECHO fast", "ECHO slow", "ECHO after")
		expect(t, c, "$4\r\nfast\r\n")
		require.Zero(t, time.Since(start))
		synctest.Wait()
		require.Len(t, r.ConnLog(0), 3, "all are logged as they arrive")
		expect(t, c, "$4\r\nslow\r\n$5\r\nafter\r\n")
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestTheScriptSeesHowOftenATokenCame(t *testing.T) {
	script := func(c *scripted.ServerConn, q scripted.Request) scripted.Action {
		if q.Attempt < 3 {
			return scripted.Refuse(fmt.Sprintf("BUSY %d", q.Attempt))
		}
		return scripted.Action{}
	}
	inBubble(t, scripted.Options{Script: script}, func(t *testing.T, r rig) {
		a, b := r.dial(t), r.dial(t)
		send(t, a, "ECHO x")
		expect(t, a, "-BUSY 1\r\n")
		send(t, b, "ECHO x", "ECHO x")
		expect(t, b, "-BUSY 2\r\n$1\r\nx\r\n")
		require.Equal(t, 1, r.Executions("x"))
	})
}

func TestTheHandshakeIsScriptedApartAndNotCounted(t *testing.T) {
	o := scripted.Options{
		Handshake: map[string]string{"HELLO": "+hi\r\n", "CLIENT": "+OK\r\n"},
		OnHandshake: func(c *scripted.ServerConn, q scripted.Request) scripted.Action {
			if q.Verb() == "HELLO" && c.Index() == 1 {
				return scripted.Refuse("NOAUTH")
			}
			return scripted.Action{}
		},
		Script: func(*scripted.ServerConn, scripted.Request) scripted.Action { return scripted.Refuse("no") },
	}
	inBubble(t, o, func(t *testing.T, r rig) {
		a, b := r.dial(t), r.dial(t)
		send(t, a, "hello 3", "CLIENT ID", "CLIENT SETNAME x", "PING")
		expect(t, a, "+hi\r\n:1\r\n+OK\r\n-no\r\n")
		send(t, b, "HELLO 3")
		expect(t, b, "-NOAUTH\r\n")
		require.Zero(t, r.Executed())
		require.Empty(t, r.ConnTokens(1))
	})
}

func TestClientKillEndsAZombieBeforeItExecutesMore(t *testing.T) {
	script := func(c *scripted.ServerConn, q scripted.Request) scripted.Action {
		if q.Token() == "slow" {
			return scripted.Delay(time.Second)
		}
		return scripted.Action{}
	}
	inBubble(t, scripted.Options{Script: script}, func(t *testing.T, r rig) {
		for i, killed := range []bool{false, true} {
			zombie, fresh := r.dial(t), r.dial(t)
			send(t, zombie, "CLIENT ID")
			expect(t, zombie, fmt.Sprintf(":%d\r\n", 1+2*i))
			send(t, zombie, "ECHO slow", "ECHO late")
			synctest.Wait()
			require.NoError(t, zombie.Close())
			synctest.Wait()
			require.Equal(t, 2, r.OpenConns(), "closing a socket does not stop what was received")
			if killed {
				send(t, fresh, "CLIENT KILL ID 3", "CLIENT KILL ID 3", "CLIENT KILL ID 9", "CLIENT KILL ID x")
				expect(t, fresh, ":1\r\n:0\r\n:0\r\n:0\r\n")
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, 1, r.Executions("slow"), "the second one was killed while it waited")
			require.Equal(t, 1, r.Executions("late"))
			require.NoError(t, fresh.Close())
			synctest.Wait()
		}
	})
}

func TestAClientThatLeavesHasWhatItSentExecuted(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		r.FreezeExec(true)
		send(t, c, "ECHO a", "ECHO b")
		require.NoError(t, c.Close())
		synctest.Wait()
		require.Zero(t, r.Executed())
		r.FreezeExec(false)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, r.Order())
		require.Zero(t, r.OpenConns())
	})
}

func TestFrozenReadsLeaveTheBytesWithTheClient(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		r.FreezeReads(true)
		send(t, c, "ECHO a") // the read under way takes this one and waits with it
		synctest.Wait()
		send(t, c, "ECHO b")
		synctest.Wait()
		require.Zero(t, r.Arrived())
		require.Positive(t, c.Out().Buffered())
		r.FreezeReads(false)
		expect(t, c, "$1\r\na\r\n$1\r\nb\r\n")
	})
}

func TestFrozenRepliesAreExecutedAndComeLater(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		r.FreezeReplies(true)
		send(t, c, "ECHO a", "ECHO b")
		silent(t, c)
		require.Equal(t, 2, r.Executed())
		require.Equal(t, 2, r.MaxUnanswered())
		r.FreezeReplies(false)
		expect(t, c, "$1\r\na\r\n$1\r\nb\r\n")
	})
}

func TestAServerMayRefuseEverythingUntilTold(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		r.RefuseAll("LOADING soon")
		send(t, c, "PING", "ECHO a")
		expect(t, c, "-LOADING soon\r\n-LOADING soon\r\n")
		r.RefuseAll("")
		send(t, c, "PING", "ECHO a")
		expect(t, c, "+PONG\r\n$1\r\na\r\n")
		require.Equal(t, 1, r.Executions("a"))
	})
}

func TestConnectionsAreClosedResetAndRefusedAtWill(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		synctest.Wait()
		r.CloseConns()
		expectEnd(t, c, io.EOF)
		c = r.dial(t)
		synctest.Wait()
		r.ResetConns()
		expectEnd(t, c, syscall.ECONNRESET)
		r.RefuseConns(true)
		expectEnd(t, r.dial(t), io.EOF)
		require.Equal(t, 2, r.Conns())
		r.RefuseConns(false)
		c = r.dial(t)
		send(t, c, "PING")
		expect(t, c, "+PONG\r\n")
	})
}

func TestAPushComesAloneWhileIdle(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		c := r.dial(t)
		synctest.Wait()
		r.Conn(0).Push(scripted.PushFrame("invalidate", "k"))
		expect(t, c, ">2\r\n$10\r\ninvalidate\r\n$1\r\nk\r\n")
		r.Conn(0).Push(nil)
		silent(t, c)
	})
}

func TestWithoutReadAheadAServerDoesNotReadWhileItWrites(t *testing.T) {
	inBubble(t, scripted.Options{ReadAhead: -1}, func(t *testing.T, r rig) {
		r.net.Pipe = memnet.Options{ToServer: 64, ToClient: 1}
		c := r.dial(t)
		send(t, c, "ECHO a")
		synctest.Wait() // the server is stuck in its answer
		send(t, c, "ECHO b")
		synctest.Wait()
		require.Equal(t, 1, r.Arrived())
		expect(t, c, "$1\r\na\r\n$1\r\nb\r\n")
	})
}

func TestGarbageDrawsAProtocolErrorAndTheEnd(t *testing.T) {
	for _, garbage := range []string{"hello\r\n", "*1\r\n+x\r\n", "*x\r\n", "*1\r\n$3\r\nabcde", "*1\r\n$-2\r\n", "*" + strings.Repeat("1", 40)} {
		inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
			c := r.dial(t)
			send(t, c, "ECHO a")
			_, err := c.Write([]byte(garbage))
			require.NoError(t, err)
			all, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Contains(t, string(all), "$1\r\na\r\n-ERR Protocol error")
		})
	}
}

func TestCloseEndsEveryGoroutineWhateverTheyWaitFor(t *testing.T) {
	script := func(c *scripted.ServerConn, q scripted.Request) scripted.Action {
		switch q.Token() {
		case "sleep":
			return scripted.Delay(time.Hour)
		case "block":
			<-c.Done()
		case "stall":
			return scripted.Stall()
		}
		return scripted.Action{}
	}
	inBubble(t, scripted.Options{Script: script}, func(t *testing.T, r rig) {
		r.net.Pipe = memnet.Options{ToClient: 1}
		for _, token := range []string{"sleep", "block", "stall", "full"} {
			send(t, r.dial(t), "ECHO "+token, "ECHO behind-"+token)
		}
		r.dial(t)
		synctest.Wait()
		start := time.Now()
		require.NoError(t, r.Close())
		require.Zero(t, time.Since(start))
		require.Zero(t, r.OpenConns())
		require.Zero(t, r.Executions("sleep"), "closed while it waited: not executed")
		require.Zero(t, r.Executions("behind-block"))
		require.NoError(t, r.Close())
		c, s := memnet.Pipe(memnet.Options{})
		r.ServeConn(s)
		expectEnd(t, c, io.EOF)
	})
}

func TestUntilWaitsForAnEventOrItsContext(t *testing.T) {
	inBubble(t, scripted.Options{}, func(t *testing.T, r rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		two := func() bool { return r.Executed() == 2 }
		require.ErrorIs(t, r.Until(ctx, two), context.DeadlineExceeded)
		c := r.dial(t)
		go func() {
			_, _ = c.Write(scripted.AppendRequest(nil, "ECHO", "a"))
			time.Sleep(time.Minute)
			_, _ = c.Write(scripted.AppendRequest(nil, "ECHO", "b"))
		}()
		start := time.Now()
		require.NoError(t, r.Until(t.Context(), two))
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestTheServerWorksOverTCP(t *testing.T) {
	script := func(c *scripted.ServerConn, q scripted.Request) scripted.Action {
		if q.Token() == "reset" {
			return scripted.Action{DropAfter: true, Reset: true}
		}
		return scripted.Action{}
	}
	s, addr, err := scripted.ListenTCP(scripted.Options{Script: script})
	require.NoError(t, err)
	defer s.Close()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	const n = 5000
	go func() {
		var raw []byte
		for i := range n {
			raw = scripted.AppendRequest(raw, "ECHO", fmt.Sprintf("%04d", i))
		}
		_, _ = c.Write(raw)
	}()
	for i := range n {
		expect(t, c, fmt.Sprintf("$4\r\n%04d\r\n", i))
	}
	require.Equal(t, n, s.Executed())
	send(t, c, "ECHO reset")
	expectEnd(t, c, syscall.ECONNRESET)
	require.NoError(t, s.Until(t.Context(), func() bool { return s.OpenConns() == 0 }))
}
