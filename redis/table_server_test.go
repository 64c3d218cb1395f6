package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// serverCommand is a command, or a subcommand, as COMMAND describes it.
type serverCommand struct {
	words string // "GET", "CONFIG SET"
	arity int    // words with arguments; negative: at least that many
	flags []string
	subs  bool
}

// serverCommands asks a real server for its list.
func serverCommands(t *testing.T, c *Client) (out []serverCommand) {
	all, err := do(t, c, NewCmd("COMMAND")).Slice()
	require.NoError(t, err)
	var walk func(v any, sub bool)
	walk = func(v any, sub bool) {
		row := v.([]any)
		sc := serverCommand{words: strings.ToUpper(strings.ReplaceAll(row[0].(string), "|", " ")), arity: int(row[1].(int64))}
		for _, f := range row[2].([]any) {
			sc.flags = append(sc.flags, f.(string))
		}
		subs, _ := row[9].([]any)
		sc.subs = len(subs) > 0
		out = append(out, sc)
		for _, s := range subs {
			walk(s, true)
		}
	}
	for _, v := range all {
		walk(v, false)
	}
	require.Greater(t, len(out), 300)
	return out
}

// overwrites are the commands that the server calls writes and the table calls Replay: they set the whole value
// that they name.
var overwrites = []string{"SET", "SETEX", "PSETEX", "MSET", "HMSET"}

// Covers: E-31, S0-38
func TestTheClassTableAgreesWithTheListOfARealServer(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	known := map[string]bool{}
	for _, sc := range serverCommands(t, c) {
		word := strings.ReplaceAll(sc.words, " ", "|")
		known[word] = true
		_, listed := table[word]
		require.True(t, listed, "%s is not in the table", word)
		cmd := split(sc.words)
		refused := cmd.check() != nil
		has := func(flag string) bool { return slices.Contains(sc.flags, flag) }
		if has("blocking") {
			if sc.words == "XREAD" || sc.words == "XREADGROUP" {
				refused = split(sc.words+" BLOCK 0 STREAMS s 0").check() != nil
			}
			require.True(t, refused, "%s blocks", sc.words)
			require.NotEqual(t, noWait, table[word].wait, "nobody knows for how long %s blocks", sc.words)
		}
		if has("pubsub") && has("noscript") {
			require.True(t, refused, "%s changes what the connection delivers", sc.words)
		}
		switch {
		case has("write"):
			if cmd.Class() == carry.Replay {
				require.Contains(t, overwrites, sc.words, "a write is called a read")
			}
		case has("readonly") && !refused:
			require.Equal(t, carry.Replay, cmd.Class(), "%s is a read", sc.words)
		}
	}
	newer := []string{
		"WAITAOF", "CLIENT|SETINFO", "CLIENT|NO-TOUCH", "CLIENT|CAPA", "CLIENT|IMPORT-SOURCE", // after 7.0
	}
	for word := range table {
		if !known[word] {
			require.Contains(t, newer, word, "the table has a word that the server does not know")
		}
	}
}

// A command given a place for a reply that it does not send, or the other way round, shifts every later reply.
// Covers: S0-44
func TestEveryCommandThatMayShareGetsExactlyOneReplyFromARealServer(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	c := connect(t, Options{Addr: s.Addr()})
	// These would make the server a replica, stop or stall it, or close the connection.
	not := []string{"REPLICAOF", "SLAVEOF", "DEBUG", "CLIENT KILL", "CLIENT PAUSE", "MIGRATE", "CLUSTER FAILOVER", "ACL SETUSER", "ACL DELUSER", "MODULE LOAD"}
	for _, sc := range serverCommands(t, c) {
		if split(sc.words).check() != nil || slices.Contains(not, sc.words) || slices.Contains([]string{"XREAD", "XREADGROUP"}, sc.words) {
			continue
		}
		arity := max(sc.arity, -sc.arity)
		for extra := range 3 {
			cmd := split(sc.words)
			for i := cmd.args.count(); i < arity+extra; i++ {
				cmd.Arg("1")
			}
			token := fmt.Sprintf("%s/%d", sc.words, extra)
			probe := Echo(token)
			errs := submitAll(t, c, []*Cmd{cmd, probe})
			require.True(t, errs[0] == nil || codeOf(errs[0]) != "" || strings.HasPrefix(errs[0].Error(), "redis: "), "%s: %v", token, errs[0])
			require.NoError(t, errs[1], token)
			got, err := probe.Text()
			require.NoError(t, err)
			require.Equal(t, token, got)
		}
	}
	require.EqualValues(t, 1, c.Stats().Pool.Dials, "all on one connection")
	require.NoError(t, c.Ping(context.Background()))
}
