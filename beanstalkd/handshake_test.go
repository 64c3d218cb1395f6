package beanstalkd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/pool"
)

// shake runs a handshake against canned replies and returns what the server was asked.
func shake(t *testing.T, h handshake, replies string) (*pool.Conn, string, error) {
	t.Helper()
	client, server := memnet.Pipe(memnet.Options{})
	_, err := server.Write([]byte(replies))
	require.NoError(t, err)
	require.NoError(t, server.CloseWrite())
	d := pool.Dial{Conn: pool.NewConn(client, client, time.Time{})}
	err = h.run(context.Background(), &d)
	require.NoError(t, client.Close())
	asked := make([]byte, 1024)
	n, _ := server.Read(asked)
	_ = server.Close()
	return d.Conn, string(asked[:n]), err
}

func watching1(tubes ...string) func() []string { return func() []string { return tubes } }

// Covers: S0-52
func TestASessionIsSetUpInOneRoundTripThatProvesThatTheServerServes(t *testing.T) {
	for _, tc := range []struct {
		h             handshake
		asks, replies string
	}{
		{handshake{tube: "default"}, "use default|list-tube-used", "USING default|USING default"},
		{handshake{tube: "a", watched: watching1("default")}, "use a|watch default|list-tube-used", "USING a|WATCHING 1|USING a"},
		{
			handshake{tube: "a", watched: watching1("b", "c")}, "use a|watch b|watch c|ignore default|list-tube-used",
			"USING a|WATCHING 2|WATCHING 3|WATCHING 2|USING a",
		},
	} {
		lines := func(s string) string { return strings.ReplaceAll(s, "|", "\r\n") + "\r\n" }
		conn, asked, err := shake(t, tc.h, lines(tc.replies))
		require.NoError(t, err)
		require.Equal(t, lines(tc.asks), asked)
		require.Empty(t, conn.Unread)
		require.Nil(t, conn.Session, "there is nothing to fence by")
	}
}

// A server that answered its handshake twice had its second answer waiting when the first command went out. The
// engine did not pair the two, but could not know that the command had not run, and a NoRetry one failed for it.
// Covers: C09, E-37
func TestAReplyBehindTheLastOneOfAHandshakeFailsTheDial(t *testing.T) {
	for _, surplus := range []string{"USING a\r\n", "INSERTED 1\r", "\r\n"} {
		conn, _, err := shake(t, handshake{tube: "a"}, "USING a\r\nUSING a\r\n"+surplus)
		require.ErrorIs(t, err, errSurplus)
		require.False(t, pool.IsPermanent(err))
		require.Empty(t, conn.Unread)
	}
}

func TestAHandshakeThatIsRefusedOrCutFailsTheDialAndSomeRefusalsForGood(t *testing.T) {
	for _, tc := range []struct {
		replies   string
		permanent bool
	}{
		{"", false},
		{"USING a\r\n", false},
		{"USING a\r\nUSING", false},
		{"OUT_OF_MEMORY\r\nUSING default\r\n", false},
		{"INTERNAL_ERROR\r\n", false},
		{"USING a\r\nUSING b\r\n", false},
		{"USING a\r\nINSERTED 1\r\n", false},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", false},
		{"OK 999999999\r\n", false},
		{strings.Repeat("A", 2000), false},
		{"BAD_FORMAT\r\nUSING default\r\n", true},
		{"UNKNOWN_COMMAND\r\n", true},
	} {
		conn, _, err := shake(t, handshake{tube: "a"}, tc.replies)
		require.Error(t, err, tc.replies)
		require.Equal(t, tc.permanent, pool.IsPermanent(err), "%v", err)
		require.Empty(t, conn.Unread)
	}
	_, _, err := shake(t, handshake{tube: "a b"}, "")
	require.True(t, pool.IsPermanent(err))
}
