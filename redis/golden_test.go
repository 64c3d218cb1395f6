package redis

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/proto/resp"
)

var update = flag.Bool("update", false, "write testdata/refusals.golden from what the server says")

// provoked are ways to make a real server refuse a command: what is done before, and the command.
var provoked = []struct {
	name   string
	before []string // one command per line, undone by a restart
	cmd    string
	v      fdengine.Verdict
}{
	{"wrong type", []string{"SET k v"}, "LPUSH k x", fdengine.Verdict{}},
	{"unknown", nil, "NOSUCH a", fdengine.Verdict{}},
	{"arity", nil, "GET", fdengine.Verdict{}},
	{"no script", nil, "EVALSHA 0000000000000000000000000000000000000000 0", fdengine.Verdict{}},
	{"out of memory", []string{"CONFIG SET maxmemory 1"}, "SET k v", fdengine.Verdict{}},
	{"no replicas", []string{"CONFIG SET min-replicas-to-write 1"}, "SET k v", fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}},
	{"no replicas, script", []string{"CONFIG SET min-replicas-to-write 1"}, "EVAL return(redis.call('set',KEYS[1],1)) 1 k", fdengine.Verdict{Then: fdengine.RetryHere}},
	{"read only", []string{"REPLICAOF 127.0.0.1 1"}, "SET k v", fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo, Conn: fdengine.Retire}},
	{"read only, script", []string{"REPLICAOF 127.0.0.1 1"}, "EVAL return(redis.call('set',KEYS[1],1)) 1 k", fdengine.Verdict{Then: fdengine.RetryHere, Conn: fdengine.Retire}},
	{"master down", []string{"REPLICAOF 127.0.0.1 1", "CONFIG SET replica-serve-stale-data no"}, "GET k", fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}},
	{"no login", []string{"CONFIG SET requirepass p", "RESET"}, "GET k", fdengine.Verdict{Ran: fdengine.RanNo, Conn: fdengine.Retire}},
	{"wrong password", []string{"CONFIG SET requirepass p"}, "AUTH x", fdengine.Verdict{}},
	{"no right", []string{"ACL SETUSER u on nopass +@all -get", "AUTH u x"}, "GET k", fdengine.Verdict{}},
	{"exec without multi", nil, "EXEC", fdengine.Verdict{}},
	{"exec abort", []string{"MULTI", "NOSUCH"}, "EXEC", fdengine.Verdict{}},
	{"exec abort, read only", []string{"MULTI", "SET k v", "REPLICAOF 127.0.0.1 1 FROM OUTSIDE"}, "EXEC", fdengine.Verdict{}},
	{"cross slot", nil, "CLUSTER INFO", fdengine.Verdict{}},
	{"busy group", []string{"XGROUP CREATE s g $ MKSTREAM"}, "XGROUP CREATE s g $", fdengine.Verdict{}},
	{"not a database", nil, "SELECT 99", fdengine.Verdict{}},
}

// Fixtures of a shape that no server sends once passed every test. These are recorded from a real one, and
// compared with it each time.
// Covers: S2-17
func TestTheRefusalsOfARealServerAreThoseRecordedAndHaveTheirVerdict(t *testing.T) {
	const path = "testdata/refusals.golden"
	var got bytes.Buffer
	for _, p := range provoked {
		s := testserver.StartRedis(t, testserver.RedisOptions{})
		nc, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.Addr())
		require.NoError(t, err)
		w := newWire(nc, "")
		ask := func(line string) []byte {
			req, err := split(line).appendTo(nil), error(nil)
			require.NoError(t, err)
			_, err = nc.Write(req)
			require.NoError(t, err)
			frame, err := w.reply()
			require.NoError(t, err)
			return frame
		}
		for _, line := range p.before {
			if line, outside := strings.CutSuffix(line, " FROM OUTSIDE"); outside {
				s.Text(strings.Fields(line)...)
				continue
			}
			ask(line)
		}
		frame := ask(p.cmd)
		require.NoError(t, nc.Close())
		require.Equal(t, byte(resp.TypeError), frame[0], p.name)
		require.Equal(t, p.v, NewProtocol(s.Addr()).Verdict(frame, false), "%s: %s", p.name, frame)
		got.WriteString(p.name + ": " + string(frame[:len(frame)-2]) + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want, err := os.Open(path)
	require.NoError(t, err)
	defer want.Close()
	for lines := bufio.NewScanner(want); lines.Scan(); {
		line, err := got.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, lines.Text()+"\n", line)
	}
	require.Zero(t, got.Len())
}
