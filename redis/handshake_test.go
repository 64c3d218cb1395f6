package redis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/pool"
)

const hello3 = "%1\r\n$5\r\nproto\r\n:3\r\n"

// normal answers a handshake as a server of version 7 does.
func normal(cmd string) string {
	switch {
	case strings.HasPrefix(cmd, "HELLO"):
		return hello3
	case cmd == "CLIENT ID":
		return ":77\r\n"
	case cmd == "CLIENT INFO":
		return "=40\r\ntxt:id=77 addr=10.0.0.1:555 laddr=x fd=8\r\n"
	case strings.HasPrefix(cmd, "CLIENT KILL"):
		return ":1\r\n"
	case cmd == "PING":
		return "+PONG\r\n"
	}
	return ok
}

// shake runs a handshake against script and returns the dial, what the server was asked, and the error.
func shake(t *testing.T, h handshake, d pool.Dial, script func(cmd string) string) (*pool.Conn, []string, error) {
	t.Helper()
	client, server := memnet.Pipe(memnet.Options{})
	d.Conn = pool.NewConn(client, client, time.Time{})
	log := make(chan []string, 1)
	go func() { log <- serve(t, server, script) }()
	err := h.run(context.Background(), &d)
	require.NoError(t, client.Close())
	_ = server.Close()
	return d.Conn, <-log, err
}

// Covers: E-45
func TestASessionIsSetUpInOneRoundTripAndInThisOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		h    handshake
		d    pool.Dial
		want []string
	}{
		"plain": {handshake{}, pool.Dial{}, []string{"HELLO 3", "CLIENT ID", "CLIENT INFO", "PING"}},
		"everything": {
			handshake{protocol: 3, db: 5, name: "me"},
			pool.Dial{Username: "u", Password: "p", Fence: []any{&Session{ID: 4}, &Session{ID: 5, Addr: "h:1"}}},
			[]string{
				"HELLO 3 AUTH u p SETNAME me", "SELECT 5", "CLIENT ID", "CLIENT INFO", "CLIENT KILL ID 4",
				"CLIENT KILL ID 5 ADDR h:1", "PING",
			},
		},
		"password only": {handshake{}, pool.Dial{Password: "p"}, []string{"HELLO 3 AUTH default p", "CLIENT ID", "CLIENT INFO", "PING"}},
		"version 2": {
			handshake{protocol: 2, db: 1, name: "me"}, pool.Dial{Password: "p"},
			[]string{"AUTH p", "CLIENT SETNAME me", "SELECT 1", "CLIENT ID", "CLIENT INFO", "PING"},
		},
		"version 2 with a user": {
			handshake{protocol: 2}, pool.Dial{Username: "u", Password: "p"},
			[]string{"AUTH u p", "CLIENT ID", "CLIENT INFO", "PING"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, log, err := shake(t, tc.h, tc.d, normal)
			require.NoError(t, err)
			require.Equal(t, tc.want, log)
			require.Equal(t, &Session{ID: 77, Addr: "10.0.0.1:555"}, conn.Session)
			require.Empty(t, conn.Unread)
		})
	}
}

func TestAServerWithoutHelloIsSetUpTheOldWay(t *testing.T) {
	for _, refusal := range []string{"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n", "-NOPROTO unsupported protocol version\r\n"} {
		authed := false
		conn, log, err := shake(t, handshake{db: 2, name: "me"}, pool.Dial{Username: "u", Password: "p"}, func(cmd string) string {
			switch {
			case strings.HasPrefix(cmd, "HELLO"):
				return refusal
			case strings.HasPrefix(cmd, "AUTH"):
				authed = true
			case !authed:
				return "-NOAUTH Authentication required.\r\n"
			case cmd == "CLIENT INFO":
				return "-ERR Unknown subcommand or wrong number of arguments for 'INFO'.\r\n"
			}
			return normal(cmd)
		})
		require.NoError(t, err)
		require.Equal(t, []string{"AUTH u p", "CLIENT SETNAME me", "SELECT 2", "CLIENT ID", "CLIENT INFO", "PING"}, log[len(log)-6:])
		require.Equal(t, &Session{ID: 77}, conn.Session)
	}
}

// Covers: S0-52
func TestARefusedStepFailsTheDialAndSomeRefusalsForGood(t *testing.T) {
	for _, tc := range []struct {
		at, reply string
		permanent bool
		protocol  int
	}{
		{"HELLO", "-WRONGPASS invalid username-password pair or user is disabled.", true, 3},
		{"HELLO", "-NOPERM this user has no permissions to run the 'hello' command", true, 3},
		{"HELLO", "-NOAUTH HELLO must be called with the client already authenticated", true, 3},
		{"HELLO", "-LOADING Redis is loading the dataset in memory", false, 3},
		{"HELLO", "-ERR max number of clients reached", false, 3},
		{"AUTH", "-WRONGPASS invalid username-password pair or user is disabled.", true, 2},
		{"AUTH", "-ERR invalid password", true, 2},
		{"AUTH", "-ERR AUTH <password> called without any password configured for the default user.", true, 2},
		{"AUTH", "-ERR max number of clients reached", false, 2},
		{"SELECT", "-ERR DB index is out of range", true, 3},
		{"SELECT", "-ERR SELECT is not allowed in cluster mode", true, 3},
		{"SELECT", "-NOAUTH Authentication required.", true, 3},
		{"SELECT", "-BUSY Redis is busy running a script.", false, 3},
		{"CLIENT KILL", "-BUSY Redis is busy running a script.", false, 3},
		{"CLIENT ID", "-NOAUTH Authentication required.", true, 3},
		{"PING", "-LOADING Redis is loading the dataset in memory", false, 3},
		{"PING", "-MASTERDOWN Link with MASTER is down", false, 3},
		{"PING", "-NOAUTH Authentication required.", true, 3},
		{"PING", "-BUSY Redis is busy running a script.", false, 3},
		{"PING", "+OK", false, 3},
		{"PING", ":1", false, 3},
		{"PING", "$-1", false, 3},
		{"CLIENT ID", "@what", false, 3},
	} {
		t.Run(tc.at+" "+tc.reply, func(t *testing.T) {
			d := pool.Dial{Username: "", Password: "secret", Fence: []any{&Session{ID: 9}}}
			conn, _, err := shake(t, handshake{protocol: tc.protocol, db: 3}, d, func(cmd string) string {
				if strings.HasPrefix(cmd, tc.at) {
					return tc.reply + "\r\n"
				}
				return normal(cmd)
			})
			require.Error(t, err)
			require.Equal(t, tc.permanent, pool.IsPermanent(err), "%v", err)
			if code, _, _ := strings.Cut(tc.reply, " "); code[0] == '-' {
				var se *ServerError
				require.ErrorAs(t, err, &se)
				require.Equal(t, code[1:], se.Code)
			}
			require.Empty(t, conn.Unread)
		})
	}
}

func TestMissingRightsAndUnknownCommandsThatAreNotNeededAreTolerated(t *testing.T) {
	for _, tc := range []struct{ at, reply string }{
		{"CLIENT SETNAME", "-NOPERM this user has no permissions to run the 'client|setname' command"},
		{"CLIENT ID", "-ERR unknown subcommand 'ID'. Try CLIENT HELP."},
		{"CLIENT ID", "-NOPERM no"},
		{"CLIENT INFO", "-ERR Unknown subcommand or wrong number of arguments for 'INFO'."},
		{"CLIENT KILL", ":0"},
		{"CLIENT KILL", "-ERR No such client"},
		{"CLIENT KILL", "-NOPERM this user has no permissions to run the 'client|kill' command"},
		{"PING", "-NOPERM this user has no permissions to run the 'ping' command"},
	} {
		conn, log, err := shake(t, handshake{protocol: 2, name: "n"}, pool.Dial{Fence: []any{&Session{ID: 9}}}, func(cmd string) string {
			if strings.HasPrefix(cmd, tc.at) {
				return tc.reply + "\r\n"
			}
			return normal(cmd)
		})
		require.NoError(t, err, tc.reply)
		require.Equal(t, "PING", log[len(log)-1])
		if tc.at == "CLIENT ID" {
			require.Nil(t, conn.Session, "without an id there is nothing to fence")
		}
	}
}

// A server that is full says so at once, unasked, and closes.
// Covers: E-37
func TestAFullServerIsAFailedDialWithItsOwnWords(t *testing.T) {
	client, server := memnet.Pipe(memnet.Options{})
	_, err := server.Write([]byte("-ERR max number of clients reached\r\n"))
	require.NoError(t, err)
	require.NoError(t, server.CloseWrite())
	err = handshake{}.run(context.Background(), &pool.Dial{Conn: pool.NewConn(client, client, time.Time{})})
	require.ErrorContains(t, err, maxClients)
	require.False(t, pool.IsPermanent(err))
	require.NoError(t, errors.Join(client.Close(), server.Close()))
}

func TestWhatFollowsTheLastReplyIsLeftForTheHolder(t *testing.T) {
	push := ">2\r\n+a\r\n+b\r\n"
	conn, _, err := shake(t, handshake{}, pool.Dial{}, func(cmd string) string {
		switch {
		case cmd == "PING":
			return "+PONG\r\n" + push + ">1\r\n+cut"
		case strings.HasPrefix(cmd, "HELLO"):
			return push + hello3 + push // pushes are not replies
		}
		return normal(cmd)
	})
	require.NoError(t, err)
	require.Equal(t, push+">1\r\n+cut", string(conn.Unread))
}

// A server that answered its handshake twice had its second answer waiting when the first command went out. The
// engine did not pair the two, but could not know that the command had not run, and a NoRetry one failed for it.
// Covers: C09, E-37
func TestAReplyBehindTheLastOneOfAHandshakeFailsTheDial(t *testing.T) {
	for _, surplus := range []string{"+OK\r\n", "-ERR x\r\n", "+st", "$536870912\r\n", "\r\n", ">1\r\n+a\r\n:1\r\n", ">1\r\n+a\r\n:"} {
		conn, _, err := shake(t, handshake{}, pool.Dial{}, func(cmd string) string {
			if cmd == "PING" {
				return "+PONG\r\n" + surplus
			}
			return normal(cmd)
		})
		require.Error(t, err, "%q", surplus)
		require.False(t, pool.IsPermanent(err))
		require.Empty(t, conn.Unread)
	}
}

func TestAHandshakeThatIsCutOrTooLargeFails(t *testing.T) {
	for _, at := range []string{"HELLO", "CLIENT ID", "CLIENT INFO", "PING"} {
		_, _, err := shake(t, handshake{}, pool.Dial{}, func(cmd string) string {
			if strings.HasPrefix(cmd, at) {
				return ""
			}
			return normal(cmd)
		})
		require.Error(t, err, at)
		require.False(t, pool.IsPermanent(err))
	}
	_, _, err := shake(t, handshake{}, pool.Dial{}, func(string) string { return "$100000000\r\n" })
	require.ErrorContains(t, err, "limit")
}

func TestAPasswordThatTheServerQuotesIsNotInTheError(t *testing.T) {
	const secret = "hunter2-very-secret"
	for _, protocol := range []int{2, 3} {
		_, _, err := shake(t, handshake{protocol: protocol}, pool.Dial{Password: secret}, func(cmd string) string {
			return "-ERR cannot do `" + cmd + "`\r\n"
		})
		require.ErrorContains(t, err, "***")
		require.NotContains(t, err.Error(), secret)
	}
}
