package redis

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
)

// keyOf is the key of a command; "-" when it has none.
func keyOf(c interface{ Key() ([]byte, bool) }) string {
	if key, ok := c.Key(); ok {
		return string(key)
	}
	return "-"
}

// keySamples are commands whose keys are not where their arity alone puts them. Each is looked at by a real server.
var keySamples = []string{
	"EVAL return 0", "EVAL return 1 k", "EVAL return 2 k l m", "EVALSHA abc 1 k", "EVALSHA abc 0 k", "EVAL_RO return 1 k", "EVALSHA_RO abc 2 k l",
	"EVAL return 00 k", "FCALL f 1 k", "FCALL f 0", "FCALL_RO f 2 k l",
	"XREAD STREAMS s 0", "XREAD COUNT 5 STREAMS s t 0 0", "XREAD BLOCK 5 COUNT 5 STREAMS s 0",
	"XREADGROUP GROUP g c STREAMS s >", "XREADGROUP GROUP STREAMS COUNT COUNT 2 NOACK BLOCK 0 STREAMS s t > >", "xread streams streams 0",
	"BITOP AND d a b", "PFDEBUG GETREG k", "OBJECT ENCODING k", "object freq k", "OBJECT IDLETIME k", "OBJECT REFCOUNT k", "MEMORY USAGE k", "MEMORY USAGE k SAMPLES 5",
	"XGROUP CREATE k g $", "XGROUP CREATECONSUMER k g c", "XGROUP DELCONSUMER k g c", "XGROUP DESTROY k g", "XGROUP SETID k g 0",
	"XINFO STREAM k", "XINFO GROUPS k", "XINFO CONSUMERS k g",
	"SINTERCARD 2 a b", "ZDIFF 2 a b WITHSCORES", "ZINTER 1 a", "ZINTERCARD 1 a", "ZUNION 2 a b", "ZMPOP 1 a MIN", "LMPOP 2 a b LEFT",
	"BLMPOP 0 2 a b LEFT", "BZMPOP 0 1 a MIN", "ZUNIONSTORE d 2 a b", "ZINTERSTORE d 1 a", "ZDIFFSTORE d 1 a", "ZRANGESTORE d a 0 1",
	"MIGRATE h 1 k 0 5", "MIGRATE h 1 k 0 5 COPY REPLACE AUTH p", "MIGRATE h 1 k 0 5 AUTH2 u p",
	"SORT k BY w_* GET o_* STORE d", "SORT_RO k GET #", "GEORADIUS k 0 0 1 m STORE d", "GEORADIUSBYMEMBER k m 1 m STOREDIST d", "GEOSEARCHSTORE d k FROMMEMBER m BYRADIUS 1 m",
	"COPY a b REPLACE", "RENAME a b", "LMOVE a b LEFT RIGHT", "SMOVE a b m", "RPOPLPUSH a b", "MSET a 1 b 2", "DEL a b", "LCS a b", "PFMERGE d a", "PFCOUNT a b",
	"SET k v EX 5", "GETEX k PERSIST", "XADD k NOMKSTREAM * f v", "XAUTOCLAIM k g c 0 0", "ZADD k NX 1 m", "RESTORE k 0 v", "BLMOVE a b LEFT RIGHT 0", "WATCH a b",
}

// migrateKeys has an empty argument, which no line of words can show.
func migrateKeys(behind ...any) *Cmd {
	return NewCmd("MIGRATE", "h", 1, "", 0, 5, "AUTH2", "KEYS", "x").Args(behind...)
}

// getKeys asks a server for the first key of a command; "-" when it says that there is none, and empty when it cannot
// say anything about it.
func getKeys(t *testing.T, c *Client, cmd *Cmd) string {
	t.Helper()
	ask := Build("COMMAND").Arg("GETKEYS")
	walk := cmd.args.walk()
	for range cmd.args.count() {
		ask.ArgBytes(walk.next())
	}
	err := c.Do(context.Background(), ask)
	if err != nil {
		for _, known := range []string{"no key arguments", "Invalid arguments", "Invalid command", "Invalid number of arguments"} {
			if strings.Contains(err.Error(), known) {
				if known == "no key arguments" {
					return "-"
				}
				return "? " + known
			}
		}
		require.NoError(t, err)
	}
	keys, err := ask.Strings()
	require.NoError(t, err)
	if len(keys) == 0 {
		return "-"
	}
	return keys[0]
}

// Covers: E-32
func TestTheFirstKeyIsTheOneThatARealServerFinds(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	sampled := map[string]bool{}
	check := func(cmd *Cmd, shown string) {
		t.Helper()
		want := getKeys(t, c, cmd)
		if strings.HasPrefix(want, "? Invalid arguments") { // what the server says about a count of zero
			want = "-"
		}
		require.Equal(t, want, keyOf(cmd), shown)
		var words [longestWord]byte
		_, word := lookup(&cmd.args, &words)
		sampled[string(word)] = true
	}
	for _, line := range keySamples {
		check(split(line), line)
	}
	check(migrateKeys("KEYS", "k", "l"), "MIGRATE with KEYS")
	check(migrateKeys("AUTH", "KEYS", "KEYS", "k"), "MIGRATE with a password")

	// All others of the server's list, with plain arguments.
	seen := 0
	for _, sc := range serverCommands(t, c) {
		word := strings.ReplaceAll(sc.words, " ", "|")
		if sampled[word] || sc.subs {
			continue
		}
		cmd := split(sc.words)
		for i := cmd.args.count(); i < max(sc.arity, -sc.arity)+2; i++ {
			if sc.arity > 0 && i >= sc.arity {
				break
			}
			cmd.Arg("a" + string(rune('0'+i)))
		}
		if cmd.args.count() == 1 { // which GETKEYS does not take
			require.Equal(t, "-", keyOf(cmd), sc.words)
			continue
		}
		switch want := getKeys(t, c, cmd); {
		case slices.Contains([]string{"PUBLISH", "SPUBLISH"}, word):
			require.Equal(t, "-", want, "a channel is no key to the server")
			require.Equal(t, "a1", keyOf(cmd), sc.words)
		default:
			require.False(t, strings.HasPrefix(want, "?"), "%v: %s", cmd, want)
			require.Equal(t, want, keyOf(cmd), sc.words)
		}
		seen++
	}
	require.Greater(t, seen, 250)
	for word, e := range table {
		if e.key != noKey && !sampled[word] && e.key != behindName {
			t.Errorf("%s has no sample", word)
		}
	}
}

func TestAKeyMayBeAnythingAndBeMissing(t *testing.T) {
	big := strings.Repeat("x", largeFrom)
	for name, tc := range map[string]struct {
		cmd  interface{ Key() ([]byte, bool) }
		want string
	}{
		"none":                         {new(Cmd), "-"},
		"name only":                    {Build("GET"), "-"},
		"no name":                      {new(Cmd).ArgInt(5).Arg("k"), "k"},
		"number":                       {NewCmd("GET", 12), "12"},
		"empty":                        {Get(""), ""},
		"any case":                     {NewCmd("gEt", "k"), "k"},
		"large string":                 {Get(big), big},
		"large bytes":                  {NewCmd("GET", []byte(big)), big},
		"large behind a large":         {NewCmd("EVAL", big, 1, big+"k"), big + "k"},
		"large before":                 {NewCmd("EVAL", big, 1, "k", big), "k"},
		"missing behind a count":       {NewCmd("EVAL", "return", 1), "-"},
		"count missing":                {NewCmd("EVAL", "return"), "-"},
		"sub without its key":          {NewCmd("OBJECT", "ENCODING"), "-"},
		"no streams":                   {NewCmd("XREAD", "COUNT", 1), "-"},
		"cut off in an option":         {NewCmd("XREAD", "COUNT"), "-"},
		"nothing behind streams":       {NewCmd("XREAD", "STREAMS"), "-"},
		"large option":                 {NewCmd("XREAD", big, "STREAMS", "s", "0"), "s"},
		"short migrate":                {NewCmd("MIGRATE", "h", 1), "-"},
		"migrate of a large key":       {NewCmd("MIGRATE", "h", 1, big, 0, 5), big},
		"migrate without keys":         {NewCmd("MIGRATE", "h", 1, ""), "-"},
		"migrate cut off":              {NewCmd("MIGRATE", "h", 1, "", 0, 5, "AUTH"), "-"},
		"migrate, nothing behind":      {NewCmd("MIGRATE", "h", 1, "", 0, 5, "KEYS"), "-"},
		"unknown command":              {NewCmd("JSON.SET", "doc", "$", "1"), "doc"},
		"unknown, no arguments":        {NewCmd("MODULE.PING"), "-"},
		"unknown subcommand":           {NewCmd("XGROUP", "NEWER", "s", "g"), "s"},
		"unknown subcommand, no key":   {NewCmd("XGROUP", "NEWER"), "-"},
		"container":                    {NewCmd("CONFIG", "GET", "x"), "-"},
		"transaction":                  {NewTx(Ping(), Get("a"), Get("b")), "a"},
		"transaction of no key":        {NewTx(Ping()), "-"},
		"transaction of nothing":       {NewTx(), "-"},
		"script that is refused whole": {RefusedWhole{NewScript("return 1").EvalSha([]string{"k"}, "v")}, "k"},
		"channel":                      {Publish("c", "m"), "c"},
	} {
		require.Equal(t, tc.want, keyOf(tc.cmd), name)
	}
}

func TestAllocNothingToFindAKey(t *testing.T) {
	for _, cmd := range []*Cmd{Get("k"), NewCmd("EVAL", "return", 1, "k"), NewCmd("XREAD", "COUNT", 1, "STREAMS", "s", "0"), NewCmd("JSON.GET", "k")} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			cmd.looked = false
			_, _ = cmd.Key()
		}))
	}
}
