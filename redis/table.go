package redis

import (
	"strings"

	"github.com/fdengine/fullduplex/carry"
)

// entry is what the table knows about a command, or about a subcommand of one.
type entry struct {
	class   carry.Class
	why     barrier
	options options
	subs    bool // the second word decides: look for NAME|SUB first
}

// options names the arguments that change what an entry says.
type options uint8

const (
	plain       options = iota
	setOptions          // SET: all but the expiry ones make the effect depend on what is there
	readOptions         // XREAD: BLOCK before STREAMS blocks
)

// group is a part of the table: words that share an entry. A subcommand is written NAME|SUB.
type group struct {
	entry entry
	words string
}

// groups is the class table, for redis 7.0 and what later servers added to the refused kinds. A command that is
// not in it is NoRetry and may share the connection.
//
// Replay means: run twice in a row it leaves the same data and gives the same reply as run once. These are reads,
// and writes that set the whole value they name. So DEL, SADD, HSET or EXPIRE are NoRetry although their effect
// is the same the second time: their reply is not, or they act on whatever value is there by then. Who does not
// look at the reply may say WithClass(carry.Replay). A Replay write that runs late can still undo a write that
// another client made in between; within one client order is kept.
func groups() []group {
	replay := entry{class: carry.Replay}
	return []group{
		// Reads.
		{replay, "GET GETRANGE SUBSTR MGET STRLEN LCS GETBIT BITCOUNT BITPOS BITFIELD_RO"},
		{replay, "HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN HRANDFIELD HSCAN"},
		{replay, "LRANGE LINDEX LLEN LPOS"},
		{replay, "SMEMBERS SISMEMBER SMISMEMBER SCARD SRANDMEMBER SSCAN SDIFF SINTER SINTERCARD SUNION"},
		{replay, "ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE " +
			"ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZDIFF ZINTER ZINTERCARD ZUNION"},
		{replay, "XLEN XRANGE XREVRANGE XPENDING XINFO|STREAM XINFO|GROUPS XINFO|CONSUMERS XINFO|HELP XGROUP|HELP"},
		{replay, "GEODIST GEOHASH GEOPOS GEOSEARCH GEORADIUS_RO GEORADIUSBYMEMBER_RO PFCOUNT"},
		{replay, "EXISTS TYPE TTL PTTL EXPIRETIME PEXPIRETIME KEYS SCAN RANDOMKEY DBSIZE DUMP TOUCH SORT_RO " +
			"OBJECT|ENCODING OBJECT|FREQ OBJECT|IDLETIME OBJECT|REFCOUNT OBJECT|HELP MEMORY|USAGE"},
		{replay, "EVAL_RO EVALSHA_RO FCALL_RO SCRIPT|EXISTS SCRIPT|HELP FUNCTION|LIST FUNCTION|DUMP FUNCTION|STATS FUNCTION|HELP"},
		{replay, "PING ECHO TIME LASTSAVE ROLE INFO LOLWUT COMMAND COMMAND|COUNT COMMAND|DOCS COMMAND|GETKEYS " +
			"COMMAND|GETKEYSANDFLAGS COMMAND|HELP COMMAND|INFO COMMAND|LIST CONFIG|GET CONFIG|HELP"},
		{replay, "CLIENT|ID CLIENT|INFO CLIENT|LIST CLIENT|GETNAME CLIENT|GETREDIR CLIENT|TRACKINGINFO CLIENT|HELP"},
		{replay, "ACL|CAT ACL|DRYRUN ACL|GENPASS ACL|GETUSER ACL|HELP ACL|LIST ACL|USERS ACL|WHOAMI"},
		{replay, "CLUSTER|COUNT-FAILURE-REPORTS CLUSTER|COUNTKEYSINSLOT CLUSTER|GETKEYSINSLOT CLUSTER|HELP CLUSTER|INFO " +
			"CLUSTER|KEYSLOT CLUSTER|LINKS CLUSTER|MYID CLUSTER|NODES CLUSTER|REPLICAS CLUSTER|SHARDS CLUSTER|SLAVES CLUSTER|SLOTS"},
		{replay, "LATENCY|DOCTOR LATENCY|GRAPH LATENCY|HELP LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST " +
			"MEMORY|DOCTOR MEMORY|HELP MEMORY|MALLOC-STATS MEMORY|STATS MODULE|HELP MODULE|LIST SLOWLOG|GET SLOWLOG|HELP SLOWLOG|LEN"},
		{replay, "PUBSUB|CHANNELS PUBSUB|HELP PUBSUB|NUMPAT PUBSUB|NUMSUB PUBSUB|SHARDCHANNELS PUBSUB|SHARDNUMSUB"},

		// Writes that set the whole value they name and answer OK, or the same digest.
		{entry{class: carry.Replay, options: setOptions}, "SET"},
		{replay, "SETEX PSETEX MSET HMSET SCRIPT|LOAD"},

		// XREAD is a read, XREADGROUP is not; both may block.
		{entry{class: carry.Replay, options: readOptions}, "XREAD"},
		{entry{options: readOptions}, "XREADGROUP"},

		// Never on a shared connection.
		{entry{why: blocks}, "BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP WAIT WAITAOF"},
		{entry{why: subscribes}, "SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR"},
		{entry{why: transacts}, "MULTI EXEC DISCARD WATCH UNWATCH"},
		{entry{why: setsUp}, "SELECT AUTH HELLO CLIENT|SETNAME CLIENT|SETINFO"},
		{entry{why: changesState}, "CLIENT|REPLY CLIENT|TRACKING CLIENT|CACHING CLIENT|NO-EVICT CLIENT|NO-TOUCH CLIENT|CAPA " +
			"CLIENT|IMPORT-SOURCE READONLY READWRITE ASKING RESET SCRIPT|DEBUG"},
		{entry{why: ends}, "QUIT"},
		{entry{why: noReply}, "SHUTDOWN SYNC PSYNC REPLCONF FAILOVER"},
	}
}

// longestWord bounds the words of the table; what is longer is not in it.
const longestWord = 40

// table is groups by word. It is never written after it was built.
var table = buildTable(groups())

func buildTable(gs []group) map[string]entry {
	t := make(map[string]entry)
	for _, g := range gs {
		for word := range strings.FieldsSeq(g.words) {
			if _, twice := t[word]; twice || len(word) > longestWord {
				panic("redis: command table: " + word)
			}
			e := g.entry
			e.subs = t[word].subs
			t[word] = e
		}
	}
	for word := range t {
		if parent, _, ok := strings.Cut(word, "|"); ok {
			e := t[parent]
			e.subs = true
			t[parent] = e
		}
	}
	return t
}

// lookup finds the entry of a command and applies its options. It allocates nothing. The word found is returned
// for messages: it points into words.
func lookup(args []arg, words *[longestWord]byte) (entry, []byte) {
	name := args[0].appendUpper(words[:0])
	e := table[string(name)]
	if e.subs && len(args) > 1 {
		if full := args[1].appendUpper(append(name, '|')); full != nil {
			if sub, ok := table[string(full)]; ok {
				return sub, full
			}
		}
		return entry{}, name
	}
	switch e.options {
	case setOptions:
		if !onlyExpiry(args) {
			e.class = carry.NoRetry
		}
	case readOptions:
		if blocking(args) {
			e.why = blocks
		}
	}
	return e, name
}

// onlyExpiry says whether a SET has no other options than those that set the expiry of the new value.
func onlyExpiry(args []arg) bool {
	for i := 3; i < len(args); i++ {
		a := &args[i]
		switch {
		case a.is("EX"), a.is("PX"), a.is("EXAT"), a.is("PXAT"):
			i++ // its number
		default:
			return false
		}
	}
	return true
}

// blocking says whether an XREAD or XREADGROUP has a BLOCK option. Options are walked by position, so that a
// group, consumer or stream of that name is none.
func blocking(args []arg) bool {
	for i := 1; i < len(args); i++ {
		a := &args[i]
		switch {
		case a.is("BLOCK"):
			return true
		case a.is("COUNT"):
			i++
		case a.is("GROUP"):
			i += 2
		case a.is("STREAMS"):
			return false
		} // NOACK, or an option of a newer server, whose arguments are looked at as if they were options

	}
	return false
}
