package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/proto/resp"
)

// connect makes a client of a real server, closed with the test.
func connect(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(); <-c.Done() })
	return c
}

// do runs a command and returns it.
func do(t *testing.T, c *Client, cmd *Cmd) *Cmd {
	t.Helper()
	require.NoError(t, c.Do(context.Background(), cmd))
	return cmd
}

func TestTheCommonCommandsWorkInBothVersionsOfTheProtocol(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{Unix: true, Password: "secret"})
	for name, o := range map[string]Options{
		"RESP3": {Addr: s.Addr(), Password: "secret", DB: 2, ClientName: "fd-three"},
		"RESP2": {Addr: s.Addr(), Password: "secret", Protocol: 2, DB: 3, ClientName: "fd-two"},
		"unix":  {Network: "unix", Addr: s.UnixSocket(), Password: "secret", DB: 4, ClientName: "fd-unix"},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, o)
			require.NoError(t, c.Ping(context.Background()))
			do(t, c, Set("k", "v").Arg("PX").ArgInt(60000))
			got, err := do(t, c, Get("k")).Text()
			require.NoError(t, err)
			require.Equal(t, "v", got)
			_, err = do(t, c, Get("missing")).Text()
			require.ErrorIs(t, err, Nil)
			n, err := do(t, c, IncrBy("n", 41)).Int64()
			require.NoError(t, err)
			require.EqualValues(t, 41, n)
			do(t, c, HSet("h", "a", "1", "b", "2"))
			m, err := do(t, c, HGetAll("h")).Map()
			require.NoError(t, err)
			require.Equal(t, resp.Map{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}, m)
			do(t, c, RPush("l", "x", "y"))
			l, err := do(t, c, NewCmd("LRANGE", "l", 0, -1)).Strings()
			require.NoError(t, err)
			require.Equal(t, []string{"x", "y"}, l)
			do(t, c, NewCmd("ZADD", "z", 1.5, "m"))
			f, err := do(t, c, NewCmd("ZSCORE", "z", "m")).Float64()
			require.NoError(t, err)
			require.Equal(t, 1.5, f)
			id, err := do(t, c, XAdd("s", "*", "f", "v")).Text()
			require.NoError(t, err)
			require.Contains(t, id, "-")
			set, err := do(t, c, Expire("k", time.Minute)).Bool()
			require.NoError(t, err)
			require.True(t, set)
			err = c.Do(context.Background(), LPush("k", "x"))
			require.Equal(t, "WRONGTYPE", codeOf(err))
			info, err := do(t, c, NewCmd("CLIENT", "INFO")).Text()
			require.NoError(t, err)
			require.Contains(t, info, " name="+o.ClientName+" ")
			require.Contains(t, info, fmt.Sprintf(" db=%d ", o.DB))
			n, err = do(t, c, Del("k", "n", "h", "l", "z", "s")).Int64()
			require.NoError(t, err)
			require.EqualValues(t, 6, n)
		})
	}
}

func TestUsersPasswordsAndCertificatesAreChecked(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{TLS: true, Password: "secret"})
	s.Text("ACL", "SETUSER", "worker", "on", ">pw", "~*", "+@all", "-client|kill", "-flushall")
	s.Text("ACL", "SETUSER", "least", "on", ">pw", "~*", "+echo")
	for name, tc := range map[string]struct {
		o    Options
		want string // code; empty: works
	}{
		"user":              {Options{Username: "worker", Password: "pw"}, ""},
		"least rights":      {Options{Username: "least", Password: "pw"}, ""},
		"the same, RESP2":   {Options{Username: "least", Password: "pw", Protocol: 2}, ""},
		"user, RESP2":       {Options{Username: "worker", Password: "pw", Protocol: 2}, ""},
		"wrong password":    {Options{Username: "worker", Password: "hunter2"}, "WRONGPASS"},
		"no password":       {Options{}, "NOAUTH"},
		"wrong, RESP2":      {Options{Password: "hunter2", Protocol: 2}, "WRONGPASS"},
		"no such database":  {Options{Password: "secret", DB: 99}, "ERR"},
		"secret, over TLS":  {Options{Password: "secret", Addr: s.TLSAddr(), TLS: s.TLSConfig()}, ""},
		"asked credentials": {Options{Credentials: func(context.Context) (string, string, error) { return "worker", "pw", nil }}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.o.Addr == "" {
				tc.o.Addr = s.Addr()
			}
			c := connect(t, tc.o)
			start := time.Now()
			err := c.Do(context.Background(), Echo("x"))
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, fdengine.ErrUnavailable)
			require.Equal(t, tc.want, codeOf(err))
			require.NotContains(t, err.Error(), "hunter2")
			require.Less(t, time.Since(start), 5*time.Second, "it fails at once, not after the outage limit")
		})
	}
	c := connect(t, Options{Addr: s.Addr(), Username: "worker", Password: "pw"})
	require.Equal(t, "NOPERM", codeOf(c.Do(context.Background(), NewCmd("FLUSHALL"))))
	require.NoError(t, c.Do(context.Background(), Echo("still here")))
}

// raw is a command that the table does not look at.
type raw struct{ *Cmd }

func (r raw) AppendRequest(dst []byte) ([]byte, error) { return r.appendTo(dst), nil }
func (r raw) Spec() fdengine.Spec                      { return fdengine.Spec{} }

// Closing a socket does not stop a server from running what it has received: without the fence the write on the
// old connection would win over a later one.
// Covers: E-45
func TestAWriteLeftOnATimedOutConnectionNeverRunsAfterItWasReplayed(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{ReadTimeout: 300 * time.Millisecond}})
	id, err := do(t, c, NewCmd("CLIENT", "ID")).Int64()
	require.NoError(t, err)
	// A blocking command keeps the server from running what follows it on this connection.
	blocked, old := newOutcome(), newOutcome()
	require.NoError(t, c.Submit(context.Background(), raw{NewCmd("BLPOP", "list", "0")}, blocked))
	require.NoError(t, c.Submit(context.Background(), Set("k", "old"), old))
	<-blocked.done
	requireMaybe(t, blocked.err)
	<-old.done
	require.NoError(t, old.err, "replayed")
	do(t, c, Set("k", "new"))
	s.Text("RPUSH", "list", "unblock")
	require.NotContains(t, s.Text("CLIENT", "LIST"), fmt.Sprintf("id=%d ", id))
	require.Equal(t, "new", s.Text("GET", "k"))
	require.Equal(t, "1", s.Text("LLEN", "list"), "the old BLPOP is gone too")
}

// endings is an observer that tells when a session has ended.
type endings chan struct{}

func (e endings) Observe(ev fdengine.Event) {
	if ev.Kind == fdengine.EventSessionEnd {
		e <- struct{}{}
	}
}

// Covers: E-27
func TestAConnectionThatTheServerClosedWhileIdleIsSeenAtOnceAndNotUsedAgain(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	ended := make(endings, 100)
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{Observer: ended}})
	for i := range 20 {
		id, err := do(t, c, NewCmd("CLIENT", "ID")).Text()
		require.NoError(t, err)
		require.Equal(t, "1", s.Text("CLIENT", "KILL", "ID", id))
		<-ended // nobody asked for anything: the reader saw it
		n, err := do(t, c, Incr("n")).Int64()
		require.NoError(t, err)
		require.EqualValues(t, i+1, n)
	}
	require.Equal(t, "20", s.Text("GET", "n"), "each ran exactly once")
}

// Covers: E-22
func TestAFailedDecoderCostsItsCommandOnly(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	bad := newOutcome()
	require.NoError(t, c.Submit(context.Background(), failing{Echo("bad")}, bad))
	var cmds []*Cmd
	for i := range 100 {
		cmds = append(cmds, Echo(fmt.Sprint(i)))
	}
	for i, err := range submitAll(t, c, cmds) {
		require.NoError(t, err)
		got, err := cmds[i].Text()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), got)
	}
	<-bad.done
	require.ErrorIs(t, bad.err, errDecoder)
	require.EqualValues(t, 1, c.Stats().Pool.Dials)
}

// Covers: E-30
func TestInvalidationsOfARealServerArePushes(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	pushes := make(chan string, 1000)
	c := connect(t, Options{Addr: s.Addr(), OnPush: func(frame []byte) { pushes <- string(frame) }})
	require.NoError(t, c.Do(context.Background(), raw{NewCmd("CLIENT", "TRACKING", "ON", "BCAST")}))
	var cmds []*Cmd
	for i := range 200 {
		cmds = append(cmds, Set(fmt.Sprintf("k%d", i), "v"), Echo(fmt.Sprint(i)))
	}
	for i, err := range submitAll(t, c, cmds) {
		require.NoError(t, err)
		if i%2 == 1 {
			got, err := cmds[i].Text()
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i/2), got)
		}
	}
	require.Contains(t, <-pushes, "invalidate")
	require.EqualValues(t, 1, c.Stats().Pool.Dials)
}

// Covers: E-36
func TestAReplyOverTheLimitFailsItsCommandAsAnsweredAndIsNotAskedForAgain(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{MaxReply: 1 << 20}})
	do(t, c, Set("big", strings.Repeat("x", 2<<20)))
	do(t, c, Set("fits", strings.Repeat("x", 1<<19)))
	s.Text("CONFIG", "RESETSTAT")
	err := c.Do(context.Background(), Get("big"))
	require.ErrorIs(t, err, fdengine.ErrTooLarge)
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
	b, err := do(t, c, NewCmd("GETRANGE", "fits", 0, -1)).Bytes()
	require.NoError(t, err)
	require.Len(t, b, 1<<19)
	require.Contains(t, s.Text("INFO", "commandstats"), "cmdstat_get:calls=1,")
	require.EqualValues(t, 2, c.Stats().Pool.Dials)
}

// Covers: E-37
func TestARealServerThatIsFullIsAFailedDial(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	w := s.Witness()
	_, err := w.Do("CONFIG", "SET", "maxclients", "1")
	require.NoError(t, err)
	c := connect(t, Options{Addr: s.Addr(), Engine: fdengine.Options{MaxOutage: 300 * time.Millisecond, BackoffMax: 20 * time.Millisecond}})
	err = c.Do(context.Background(), Incr("n"))
	require.ErrorIs(t, err, fdengine.ErrUnavailable)
	require.Equal(t, carry.NotSent, fdengine.FateOf(err))
	_, err = w.Do("CONFIG", "SET", "maxclients", "100")
	require.NoError(t, err)
	n, err := do(t, c, Incr("n")).Int64()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// Covers: E-18
func TestTransactionsOfARealServer(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	stop := make(chan struct{})
	wait := echoes(t, c, 4, stop)
	a, b := Incr("n"), HGetAll("h")
	require.NoError(t, c.Do(context.Background(), NewTx(HSet("h", "f", "v"), a, b)))
	n, err := a.Int64()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	m, err := b.Map()
	require.NoError(t, err)
	require.Equal(t, resp.Map{{Key: "f", Value: "v"}}, m)

	var te *TxError
	err = c.Do(context.Background(), NewTx(Set("x", "1"), Incr("h"), Set("y", "1")))
	require.ErrorAs(t, err, &te)
	require.False(t, te.Aborted)
	require.Equal(t, 1, te.Index)
	require.Equal(t, "11", s.Text("GET", "x")+s.Text("GET", "y"), "the others took effect")

	err = c.Do(context.Background(), NewTx(Set("x", "2"), NewCmd("NOSUCH"), Set("y", "2")))
	require.ErrorAs(t, err, &te)
	require.True(t, te.Aborted)
	require.Equal(t, 1, te.Index)
	require.Equal(t, "11", s.Text("GET", "x")+s.Text("GET", "y"), "nothing took effect")

	s.Text("CONFIG", "SET", "maxmemory", "1")
	err = c.Do(context.Background(), NewTx(Get("x"), Set("y", "3")))
	require.ErrorAs(t, err, &te)
	require.True(t, te.Aborted)
	require.Equal(t, "OOM", codeOf(err))
	s.Text("CONFIG", "SET", "maxmemory", "0")
	close(stop)
	require.Positive(t, wait())

	// A discarded transaction goes again by itself when the reason passes.
	s.Text("CONFIG", "SET", "min-replicas-to-write", "1")
	out := newOutcome()
	tx := NewTx(Incr("n"), Incr("n"))
	require.NoError(t, c.Submit(context.Background(), tx, out))
	for c.Stats().Engine.Refusals < 2 {
		require.NoError(t, c.Do(context.Background(), Echo("wait")))
	}
	s.Text("CONFIG", "SET", "min-replicas-to-write", "0")
	<-out.done
	require.NoError(t, out.err)
	require.Equal(t, "3", s.Text("GET", "n"))
}

// Covers: E-23
func TestADemotedServerLosesTheConnectionAndTheWriteRunsOnceItIsAPrimaryAgain(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	do(t, c, Incr("n"))
	s.Text("REPLICAOF", "127.0.0.1", "1") // nobody answers there: the data stays
	out := newOutcome()
	require.NoError(t, c.Submit(context.Background(), Incr("n"), out))
	for c.Stats().Pool.Dials < 2 {
		require.NoError(t, c.Do(context.Background(), Echo("wait")))
	}
	s.Text("REPLICAOF", "NO", "ONE")
	<-out.done
	require.NoError(t, out.err)
	require.Equal(t, "2", s.Text("GET", "n"))
	require.Positive(t, c.Stats().Engine.Refusals)
}
