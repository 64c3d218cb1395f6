package cases_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

// stateful are commands that change how many replies there are, or what the connection is to all others.
var stateful = []string{
	"SUBSCRIBE c", "PSUBSCRIBE c*", "SSUBSCRIBE c", "UNSUBSCRIBE", "MONITOR", "CLIENT REPLY OFF", "CLIENT REPLY SKIP", "SELECT 1",
	"AUTH p", "HELLO 3", "RESET", "QUIT", "SHUTDOWN NOSAVE", "MULTI", "EXEC", "DISCARD", "WATCH k", "UNWATCH", "CLIENT TRACKING ON",
	"READONLY", "ASKING",
}

// spellings of a line that a server takes for the same.
func spellings(line string) []string {
	mixed := []byte(strings.ToLower(line))
	for i := 0; i < len(mixed); i += 2 {
		mixed[i] = strings.ToUpper(string(mixed[i]))[0]
	}
	return []string{line, strings.ToLower(line), string(mixed)}
}

// raw makes a command of the words of a line, as callers do who know better.
func raw(line string) *redis.Cmd {
	var args []any
	for i, w := range strings.Fields(line) {
		if i%2 == 0 {
			args = append(args, w)
		} else {
			args = append(args, []byte(w))
		}
	}
	return redis.NewCmd(args...)
}

// chatter runs 16 callers that send ECHO of their own tokens, and one that sends transactions, until the returned
// function is called.
func chatter(t *testing.T, b *book, c *redis.Client) (stop func()) {
	done := make(chan struct{})
	var wg, started sync.WaitGroup
	turn := func(f func(i int)) {
		started.Add(1)
		wg.Go(func() {
			for i := 0; ; i++ {
				f(i)
				if i == 0 {
					started.Done()
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for g := range 16 {
		who := fmt.Sprintf("g%d", g)
		turn(func(i int) {
			if err := b.do(bg, who, c, redis.Echo(fmt.Sprintf("%s-%d", who, i))); err != nil {
				t.Errorf("%s: %v", who, err)
			}
		})
	}
	turn(func(i int) {
		one, two := redis.Echo(fmt.Sprintf("tx%d-1", i)), redis.Echo(fmt.Sprintf("tx%d-2", i))
		if err := c.Do(bg, redis.NewTx(one, two)); err != nil {
			t.Errorf("transaction: %v", err)
			return
		}
		for n, cmd := range []*redis.Cmd{one, two} {
			if got, err := cmd.Text(); err != nil || got != fmt.Sprintf("tx%d-%d", i, n+1) {
				t.Errorf("transaction answered %q, %v", got, err)
			}
		}
	})
	started.Wait()
	var once sync.Once
	return func() { once.Do(func() { close(done) }); wg.Wait() }
}

// transactions makes a server queue between MULTI and EXEC, as real ones do.
func transactions() scripted.Options {
	var mu sync.Mutex
	queued, open := map[int][]string{}, map[int]bool{}
	return scripted.Options{Script: func(c *scripted.ServerConn, req scripted.Request) scripted.Action {
		mu.Lock()
		defer mu.Unlock()
		i := c.Index()
		switch verb := req.Verb(); {
		case verb == "MULTI":
			queued[i], open[i] = nil, true
			return scripted.Reply("+OK\r\n")
		case verb == "EXEC":
			open[i] = false
			return scripted.Reply(string(scripted.AppendRequest(nil, queued[i]...)))
		case open[i]:
			queued[i] = append(queued[i], req.Token())
			return scripted.Reply("+QUEUED\r\n")
		}
		return scripted.Action{}
	}}
}

// refusedHere requires that every way to submit the line is refused at once.
func refusedHere(t *testing.T, b *book, c *redis.Client, line string) {
	t.Helper()
	for _, spelled := range spellings(line) {
		for _, cmd := range []*redis.Cmd{raw(spelled), raw(spelled).WithClass(carry.Replay)} {
			fails(t, b.do(bg, "state", c, cmd), carry.NotSent, redis.ErrNotShared)
		}
		fails(t, c.Submit(bg, raw(spelled), b), carry.NotSent, redis.ErrNotShared)
		fails(t, c.TrySubmit(raw(spelled), b), carry.NotSent, redis.ErrNotShared)
		fails(t, c.Stream().Do(bg, raw(spelled)), carry.NotSent, redis.ErrNotShared)
		fails(t, c.Do(bg, redis.NewTx(redis.Echo("x"), raw(spelled))), carry.NotSent, redis.ErrNotShared)
		errs := b.batch(bg, "state", c, commands([]*redis.Cmd{raw(spelled)}))
		fails(t, errs[0], carry.NotSent, redis.ErrNotShared)
	}
}

// C10: a command that changes how many replies come, or the state of the connection, broke the shared stream.
// https://github.com/redis/hiredis/issues/1170 https://github.com/StackExchange/StackExchange.Redis/issues/2783
// https://github.com/predis/predis/issues/669 https://github.com/daurnimator/lredis/issues/10
// https://github.com/redis/go-redis/pull/3942
func TestACommandThatWouldChangeTheSharedConnectionIsRefusedBeforeItIsWritten(t *testing.T) {
	t.Run("scripted", func(t *testing.T) {
		redisBubble(t, setup{Server: transactions()}, redis.Options{}, func(t *testing.T, r *redisRig) {
			stop := chatter(t, r.book, r.Client)
			defer stop()
			for _, line := range stateful {
				refusedHere(t, r.book, r.Client, line)
			}
			stop()
			require.Equal(t, 1, r.server.Conns())
			inside := 0
			for _, req := range r.server.Requests(0) {
				switch verb := req.Verb(); verb {
				case "MULTI":
					require.Zero(t, inside)
					inside = 3
				case "EXEC":
					require.Equal(t, 1, inside)
					inside = 0
				case "ECHO":
					if inside > 0 {
						require.True(t, strings.HasPrefix(req.Token(), "tx"), "an atomic group is contiguous: %s", req.Token())
						inside--
					}
				default:
					require.Contains(t, []string{"HELLO", "CLIENT", "PING"}, verb)
					require.Less(t, req.Seq, 5, "behind the handshake nothing of the kind: %q", req.Args)
				}
			}
		})
	})
	t.Run("real server", func(t *testing.T) {
		s := startRedis(t)
		c := realClient(t, redis.Options{Addr: s.Addr()})
		b := newBook(0)
		stop := chatter(t, b, c)
		defer stop()
		for _, line := range stateful {
			refusedHere(t, b, c, line)
			require.NoError(t, c.Do(bg, redis.Set("w-"+line, "v")))
		}
		stop()
		require.Equal(t, len(stateful), s.Int("DBSIZE"))
		require.NotContains(t, s.Text("INFO", "keyspace"), "db1", "nothing was written to another database")
		// On a connection of its own such a command is welcome.
		l, err := c.Lend(bg)
		require.NoError(t, err)
		require.NoError(t, l.Do(bg, raw("select 1")))
		require.NoError(t, l.Do(bg, redis.Set("there", "v")))
		l.Close()
		require.NoError(t, c.Do(bg, redis.Set("here", "v")))
		require.Contains(t, s.Text("INFO", "keyspace"), "db1:keys=1")
		require.Equal(t, len(stateful)+1, s.Int("DBSIZE"))
		tally.Scenario(1)
	})
}
