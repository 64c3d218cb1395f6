package redis

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// split makes a command of words, half of its arguments as bytes.
func split(line string) *Cmd {
	c := new(Cmd)
	for i, w := range strings.Fields(line) {
		if i%2 == 0 {
			c.Arg(w)
		} else {
			c.ArgBytes([]byte(w))
		}
	}
	return c
}

// Covers: S0-38
func TestTheClassOfACommandIsReplayOnlyForReadsAndWholeOverwrites(t *testing.T) {
	for class, lines := range map[carry.Class][]string{
		carry.Replay: {
			"GET k", "MGET a b", "HGETALL h", "ZRANGE z 0 -1", "XRANGE s - +", "SCAN 0", "EXISTS k", "TTL k", "PING", "ECHO x", "INFO",
			"SET k v", "SET k v EX 10", "SET k v PX 10", "SET k v EXAT 10", "SET k v PXAT 10", "SETEX k 1 v", "MSET a 1 b 2", "HMSET h f v",
			"XREAD COUNT 1 STREAMS s 0", "OBJECT ENCODING k", "CONFIG GET x", "CLIENT ID", "SCRIPT LOAD x", "EVAL_RO x 0", "COMMAND",
			"COMMAND COUNT", "MEMORY USAGE k", "BITFIELD_RO k", "SORT_RO l",
			"SET k NX", "SET NX XX EX 5", // a value and a key that look like options
		},
		carry.NoRetry: {
			"INCR k", "INCRBY k 1", "APPEND k v", "LPUSH l v", "RPUSH l v", "LPOP l", "SADD s m", "SREM s m", "HSET h f v", "HINCRBY h f 1",
			"ZADD z 1 m", "ZINCRBY z 1 m", "XADD s * f v", "XADD s 1-1 f v", "XACK s g 1", "DEL k", "UNLINK k", "EXPIRE k 1", "PERSIST k",
			"RENAME a b", "GETSET k v", "GETDEL k", "GETEX k", "SETNX k v", "MSETNX a 1", "SETBIT k 1 1", "SETRANGE k 1 x", "BITFIELD k GET u8 0",
			"SET k v NX", "SET k v XX", "SET k v GET", "SET k v EX 10 NX", "SET k v KEEPTTL", "SET k v IFEQ x", "SET k v EX 1 EX 1 GET",
			"PUBLISH c m", "SPUBLISH c m", "EVAL x 0", "EVALSHA x 0", "FCALL f 0", "XREADGROUP GROUP g c STREAMS s >", "SPOP s", "SORT l",
			"CONFIG SET a b", "CONFIG NEW", "OBJECT", "CLIENT KILL ID 1", "CLIENT PAUSE 1", "ACL SETUSER u", "FLUSHALL", "LTRIM l 0 1", "LSET l 0 v",
			"ZUNIONSTORE z 1 a", "SINTERSTORE s a", "GEORADIUS g 1 1 1 m", "COPY a b", "RESTORE k 0 x", "NOSUCHCOMMAND", "JSON.SET k . 1",
			strings.Repeat("GET", 40), "GET|SET", "CONFIG|GET x", "CONFIG " + strings.Repeat("GET", 40),
		},
	} {
		for _, line := range lines {
			for _, l := range []string{line, strings.ToLower(line), strings.ToUpper(line)} {
				require.Equal(t, class, split(l).Class(), l)
				require.NoError(t, split(l).check(), l)
			}
		}
	}
	require.Equal(t, carry.NoRetry, NewCmd(12, "GET").Class(), "a number is no name")
	require.Equal(t, carry.NoRetry, NewCmd("CONFIG", 12).Class())
}

// Covers: E-31
func TestCommandsThatMustNotShareAreRefusedInAnyLetterCaseBeforeAnythingIsEncoded(t *testing.T) {
	for _, line := range []string{
		"BLPOP l 0", "BRPOP l 0", "BRPOPLPUSH a b 0", "BLMOVE a b LEFT LEFT 0", "BLMPOP 0 1 l LEFT", "BZPOPMIN z 0", "BZPOPMAX z 0",
		"BZMPOP 0 1 z MIN", "WAIT 1 0", "WAITAOF 0 1 0", "XREAD BLOCK 0 STREAMS s $", "XREAD COUNT 1 BLOCK 0 STREAMS s $",
		"XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "XREADGROUP GROUP BLOCK STREAMS COUNT 1 NOACK BLOCK 5 STREAMS s >",
		"XREADGROUP GROUP g c CLAIM 5 BLOCK 5 STREAMS s >",
		"SUBSCRIBE c", "PSUBSCRIBE c", "SSUBSCRIBE c", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR",
		"CLIENT REPLY OFF", "CLIENT REPLY SKIP", "CLIENT TRACKING ON", "CLIENT CACHING YES", "CLIENT NO-EVICT ON", "CLIENT NO-TOUCH ON",
		"CLIENT SETNAME x", "CLIENT SETINFO LIB-NAME x", "SELECT 1", "AUTH p", "HELLO 3", "RESET", "QUIT", "SHUTDOWN", "SHUTDOWN NOSAVE",
		"MULTI", "EXEC", "DISCARD", "WATCH k", "UNWATCH", "READONLY", "READWRITE", "ASKING", "SYNC", "PSYNC ? -1", "REPLCONF x y",
		"FAILOVER", "SCRIPT DEBUG YES",
	} {
		for _, l := range []string{line, strings.ToLower(line), line[:1] + strings.ToLower(line[1:])} {
			dst := []byte("kept")
			got, err := split(l).AppendRequest(dst)
			require.ErrorIs(t, err, ErrNotShared, l)
			require.Equal(t, "kept", string(got))
			var ns *NotSharedError
			require.ErrorAs(t, err, &ns)
			require.True(t, strings.HasPrefix(line, ns.Command) || ns.Command == "XREAD" || ns.Command == "XREADGROUP", ns.Command)
			require.NotEmpty(t, ns.Why)
			require.NotEmpty(t, ns.Instead)
			require.Equal(t, carry.NotSent, fdengine.FateOf(err))
			_, err = NewTx(Get("k"), split(l)).AppendRequest(dst)
			require.ErrorIs(t, err, ErrNotShared, "inside a transaction: %s", l)
		}
	}
	for _, line := range []string{
		"XREAD STREAMS BLOCK 0", "XREAD COUNT 5 STREAMS BLOCK x 0 0", "XREADGROUP GROUP BLOCK BLOCK STREAMS s >", "CLIENT LIST", "CLIENT", "SCRIPT",
		"SET BLOCK 1", "SCRIPT LOAD DEBUG", "ECHO SUBSCRIBE",
	} {
		require.NoError(t, split(line).check(), line)
	}
	require.False(t, errors.Is(errNoName, ErrNotShared))
}

func TestLookingACommandUpAllocatesNothing(t *testing.T) {
	c := split("client Info")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var words [longestWord]byte
		e, _ := lookup(&c.args, &words)
		if e.class != carry.Replay {
			panic("wrong entry")
		}
	}))
}

func BenchmarkLookup(b *testing.B) {
	c := Get("k")
	var words [longestWord]byte
	b.ReportAllocs()
	for b.Loop() {
		lookup(&c.args, &words)
	}
}
