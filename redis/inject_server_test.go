package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
)

// A line end in a word was a second request to the server: in keys and values, in what authenticates, in names.
func TestALineEndInAnyWordIsDataAndNoRequestToARealServer(t *testing.T) {
	const evil = "x\r\nFLUSHALL\r\n*1\r\n$8\r\nFLUSHALL\r\n"
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	s.Text("ACL", "SETUSER", "worker", "on", ">"+evil, "~*", "&*", "+@all", "-flushall")
	s.Text("SET", "canary", "sings")
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		o := Options{Addr: s.Addr(), Username: "worker", Password: evil, Protocol: protocol}
		c := connect(t, o)
		id := fmt.Sprintf("%d:%s", protocol, evil)
		do(t, c, Set(id, evil))
		got, err := do(t, c, Get(id)).Text()
		require.NoError(t, err)
		require.Equal(t, evil, got)
		require.NoError(t, c.Do(ctx, NewTx(HSet("h"+id, evil, evil), RPush("l"+id, evil))))
		pop := NewCmd("BLPOP", "l"+id, 1)
		require.NoError(t, c.Blocking(ctx, pop))
		words, err := pop.Strings()
		require.NoError(t, err)
		require.Equal(t, []string{"l" + id, evil}, words)
		require.NoError(t, c.Watch(ctx, func(tx *WatchTx) error { return tx.Exec(ctx, Incr("n"+id)) }, id))
		script, err := c.EvalScript(ctx, NewScript("return ARGV[1] -- \r\n"), []string{id}, evil)
		require.NoError(t, err)
		got, err = script.Text()
		require.NoError(t, err)
		require.Equal(t, evil, got)
		sub, err := c.Subscribe(ctx, evil)
		require.NoError(t, err)
		do(t, c, Publish(evil, evil))
		m := next(t, sub)
		require.Equal(t, evil, m.Channel)
		require.Equal(t, evil, string(m.Payload))
		require.NoError(t, sub.Close())
		// Not even as the name of a command.
		require.Equal(t, "ERR", codeOf(c.Do(ctx, raw{NewCmd(evil, evil)})))
		require.Error(t, c.Do(ctx, NewCmd(evil)))

		wrong := o
		wrong.Username, wrong.Password = evil, "x"
		require.Equal(t, "WRONGPASS", codeOf(connect(t, wrong).Do(ctx, Echo("x"))))
		wrong.Username, wrong.Password = "worker", evil+"x"
		require.Equal(t, "WRONGPASS", codeOf(connect(t, wrong).Do(ctx, Echo("x"))))
	}
	for _, name := range []string{evil, "a\nb", "a\rb", "a b", "a\x00", "\x7f", "ä"} {
		o := Options{Addr: s.Addr(), ClientName: name}
		require.ErrorContains(t, o.Validate(), "ClientName has")
		_, err := New(o)
		require.Error(t, err)
		_, err = ParseURL("redis://h?client_name=" + strings.NewReplacer("\r", "%0d", "\n", "%0a", "\x00", "%00", " ", "%20", "\x7f", "%7f").Replace(name))
		require.Error(t, err, "%q", name)
	}
	require.Equal(t, "sings", s.Text("GET", "canary"))
	require.NotContains(t, s.Text("INFO", "commandstats"), "cmdstat_flushall")
}
