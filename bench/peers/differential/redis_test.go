package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// callers is how many programs run at the same time.
const callers = 4

// From so many commands on, some of each frequent kind are expected, or many: of each kind at all.
const (
	some = 2_000
	many = 20_000
)

// serverArgs are small limits that make values change their encoding often.
var serverArgs = []string{
	"--hash-max-listpack-entries", "24", "--zset-max-listpack-entries", "24", "--set-max-intset-entries", "24",
	"--list-max-listpack-size", "16", "--stream-node-max-entries", "10",
}

// Covers: E-38
func TestPipelinedRepliesEqualThoseOfGoRedisOneAtATimeInRESP2(t *testing.T) { compareRedis(t, 2) }

// Covers: E-38
func TestPipelinedRepliesEqualThoseOfGoRedisOneAtATimeInRESP3(t *testing.T) { compareRedis(t, 3) }

func compareRedis(t *testing.T, version int) {
	used := map[string]int{}
	programs := make([]*program, callers)
	for i := range programs {
		programs[i] = write(*seed, i, version, (*commands+callers-1)/callers, used)
	}
	first := testserver.StartRedis(t, testserver.RedisOptions{Args: serverArgs})
	second := testserver.StartRedis(t, testserver.RedisOptions{Args: serverArgs})

	c := dial(t, redis.Options{Addr: first.Addr(), Protocol: version})
	got := runOurs(t, c, programs)
	requireHealthy(t, c)
	want := runTheirs(t, second.Addr(), version, programs)

	diffs := differences(programs, got, want)
	require.Empty(t, diffs, "seed %d, %d commands: %d differ", *seed, *commands, len(diffs))
	requireSameData(t, first, second)
	requireVaried(t, got, used)
}

// dial makes a client that is closed with the test.
func dial(t *testing.T, o redis.Options) *redis.Client {
	o.Engine.ReadTimeout, o.Engine.WriteTimeout = patience, patience
	c, err := redis.New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		<-c.Done()
	})
	return c
}

// differences lists where the outcomes differ, in the order of the programs.
func differences(programs []*program, got, want [][]string) (out []string) {
	for i, p := range programs {
		for _, pc := range p.pieces {
			for j := range pc.ops {
				at := pc.first + j
				if g, w := got[i][at], want[i][at]; g != w {
					out = append(out, fmt.Sprintf("caller %d, command %d, manner %d: %s\n  fullduplex %s\n  go-redis   %s",
						p.caller, at, pc.manner, pc.ops[j].String(), g, w))
				}
			}
		}
	}
	return out
}

// requireVaried checks that the run was one worth making: every kind of command, and enough of each kind of reply.
func requireVaried(t *testing.T, results [][]string, used map[string]int) {
	if *commands < some {
		t.Logf("%d commands are too few to expect of each kind", *commands)
		return
	}
	if *commands >= many {
		for _, rows := range append(slices.Clone(families), blockingRows) {
			for _, r := range rows {
				require.NotZero(t, used[r.text], "%s", r.text)
			}
		}
	}
	count := map[string]int{}
	total := 0
	for _, result := range results {
		total += len(result)
		for _, r := range result {
			switch {
			case strings.HasPrefix(r, "-"), strings.HasPrefix(r, `"-`):
				count["error"]++
			case r == "nil", r == `"$-1\r\n"`, r == `"_\r\n"`, r == `"*-1\r\n"`:
				count["null"]++
			case strings.HasPrefix(r, "discarded: "):
				count["discarded"]++
			case strings.Contains(r, " bytes, "), strings.Contains(r, " characters, "):
				count["long"]++
			}
		}
	}
	t.Log(count)
	for kind, percent := range map[string]int{"error": 5, "null": 2, "long": 1} {
		require.Greater(t, count[kind]*100, total*percent, "%s", kind)
	}
	require.Less(t, count["error"], total/2)
	if *commands >= many {
		require.NotZero(t, count["discarded"])
	}
}

// requireSameData checks that both servers hold the same in the end.
func requireSameData(t *testing.T, a, b *testserver.Redis) {
	keys := keyByKey(t, a)
	require.Equal(t, keys, keyByKey(t, b))
	if *commands >= some {
		require.NotEmpty(t, keys)
	}
	require.Equal(t, a.Text("DEBUG", "DIGEST"), b.Text("DEBUG", "DIGEST"))
}

// keyByKey describes each key of a server: database, type, encoding, digest of the value, and what the digest of a
// stream leaves out.
func keyByKey(t *testing.T, s *testserver.Redis) map[string]string {
	w := s.Witness()
	ask := func(args ...string) any {
		v, err := w.Do(args...)
		if err != nil {
			return err.Error()
		}
		return v
	}
	out := map[string]string{}
	for _, db := range []string{"0", "1"} {
		require.Equal(t, "OK", ask("SELECT", db))
		keys, ok := ask("KEYS", "*").([]any)
		require.True(t, ok)
		for _, k := range keys {
			key := k.(string)
			text := fmt.Sprint(ask("TYPE", key), ask("OBJECT", "ENCODING", key), ask("DEBUG", "DIGEST-VALUE", key))
			if ask("TYPE", key) == "stream" {
				text += fmt.Sprint(ask("XINFO", "GROUPS", key), ask("XINFO", "STREAM", key))
			}
			out[db+" "+key] = text
		}
	}
	return out
}
