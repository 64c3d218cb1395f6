package redis

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/resp"
)

// FuzzParseURL holds the reader of URLs to: no panic; what it accepts is valid and prints without its password; an
// error quotes no password either.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"redis://localhost:6379/0?client_name=jobs", "rediss://user:s3cr3t-word@h/1?skip_verify=true", "unix://:s3cr3t-word@/tmp/sock?db=2",
		"valkey://s3cr3t-word@[::1]:7000?dial_timeout=5s&max_retries=-1", "redis://h?read_timeout=-1&db=x#frag", "redis:h", "redis://u:s3cr3t-word%zz@h:99999/99",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseURL(s)
		if err != nil {
			if i := strings.LastIndexByte(s, '@'); i > 0 {
				if j := strings.LastIndexAny(s[:i], ":/"); i-j > 8 && !strings.Contains(known, s[j+1:i]) {
					require.NotContains(t, err.Error(), s[j+1:i])
				}
			}
			return
		}
		require.NoError(t, o.Validate())
		require.NotEmpty(t, o.Addr)
		if len(o.Password) > 8 && !strings.Contains(o.Addr+o.Username+o.Network, o.Password) && !strings.Contains("redis  with credentials password", o.Password) {
			require.NotContains(t, o.String(), o.Password)
		}
		if o.Network == "tcp" {
			_, _, err := net.SplitHostPort(o.Addr)
			require.NoError(t, err)
		}
	})
}

// known are the words of the errors themselves, which a fuzzer finds out to use as a password.
var known = "redis: URL must have // behind its scheme; unknown parameter; known are " + strings.Join(urlNames[:], ", ")

// FuzzReply holds what reads replies to: no panic on anything that a Scanner lets through, an error reply is one for
// everybody, and a frame that was decoded is not needed any more.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"$5\r\nhello\r\n", "-MOVED 3999 127.0.0.1:6381\r\n", "-ASK 1 :1\r\n", "-ERR MOVED\r\n", "-\r\n", "!9\r\nMOVED a b\r\n", "*2\r\n+a\r\n*0\r\n", "%1\r\n+k\r\n-ERR in\r\n", "_\r\n", "*-1\r\n",
		"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n-ERR x\r\n", "+OK\r\n-ERR no\r\n+QUEUED\r\n-EXECABORT x\r\n", "-LOADING x\r\n:1\r\n:2\r\n-ERR EXEC without MULTI\r\n",
		">3\r\n+message\r\n+c\r\n+x\r\n", "*4\r\n+pmessage\r\n+p\r\n+c\r\n*1\r\n:1\r\n", "*3\r\n+subscribe\r\n$-1\r\n:1\r\n", "|1\r\n+a\r\n+b\r\n-READONLY x\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		var frames [][]byte
		p := newProtocol("h:1", resp.Limits{})
		for rest := stream; ; {
			n, need, kind, err := p.Next(rest)
			if err != nil || n == 0 {
				require.True(t, err != nil || need > len(rest))
				break
			}
			frame := rest[:n:n]
			rest = rest[n:]
			checkReply(t, p, frame, kind)
			if frames = append(frames, frame); len(frames) >= 4 {
				checkTx(t, frames[len(frames)-4:])
			}
		}
	})
}

func checkReply(t *testing.T, p *protocol, frame []byte, kind fdengine.Kind) {
	if kind == fdengine.KindPush {
		for _, n := range []notice{isMessage, isPatternMessage} {
			_, _, _, _ = readMessage(frame, n)
		}
		_ = noticeOf(frame)
		_ = confirms(frame, "subscribe", "c")
		return
	}
	shown := append([]byte(nil), frame...)
	c := Get("k")
	err := c.DecodeReply(fdengine.Reply{Frame: shown})
	clear(shown)
	require.Equal(t, kind == fdengine.KindRefusal, err != nil)
	if err != nil {
		var se *ServerError
		require.ErrorAs(t, err, &se)
		v := p.Verdict(frame, false)
		_ = v.Hint
	}
	again := Get("k")
	require.Equal(t, err, again.DecodeReply(fdengine.Reply{Frame: frame}))
	a, aErr := c.Text()
	b, bErr := again.Text()
	require.Equal(t, b, a, "the frame was kept")
	require.Equal(t, bErr, aErr)
	_, _ = c.Int64()
	_, _ = c.Float64()
	_, _ = c.Bool()
	_, _ = c.Bytes()
	_, _ = c.Append(nil)
	_, _ = c.Strings()
	_, _ = c.Slice()
	_, _ = c.Map()
	_, _ = c.Any()
	_ = noticeOf(frame)
	_, _, _, _ = readMessage(frame, isMessage)
}

// checkTx reads four frames as the answer of a transaction of two commands. One that is no success names an error for
// each command, or results for all.
func checkTx(t *testing.T, frames [][]byte) {
	var all []byte
	for _, f := range frames {
		all = append(all, f...)
	}
	tx := NewTx(Get("a"), Get("b"))
	_ = tx.Verdict(all, false)
	if tx.DecodeReply(fdengine.Reply{Frame: all}) == nil {
		for _, c := range tx.Cmds() {
			require.NotErrorIs(t, c.Err(), ErrNoReply)
		}
	}
}

// FuzzHandshake holds the handshake to: no panic, an end, and a Session only from an id that was given.
func FuzzHandshake(f *testing.F) {
	for _, s := range []string{
		"%1\r\n+server\r\n+redis\r\n:7\r\n$12\r\nid=7 addr=a:\r\n+PONG\r\n", "-ERR unknown command\r\n:1\r\n+x\r\n+PONG\r\n:1\r\n-ERR unknown\r\n+PONG\r\n", "-NOPROTO x\r\n",
		">1\r\n+a\r\n", "$1000000\r\n", "+OK\r\n+OK\r\n+OK\r\n+PONG\r\n+OK\r\n", "-WRONGPASS x\r\n", "+OK\r\n:1\r\n+a\r\n+PONG\r\n>1\r\n+cut",
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, replies []byte, three bool) {
		client, server := memnet.Pipe(memnet.Options{ToClient: len(replies) + 1})
		defer client.Close()
		defer server.Close()
		_, err := server.Write(replies)
		require.NoError(t, err)
		require.NoError(t, server.CloseWrite())
		h := handshake{protocol: 2, db: 0}
		if three {
			h.protocol = 3
		}
		d := &pool.Dial{Conn: &pool.Conn{Conn: client}, Password: "s3cr3t-word"}
		if err := h.run(context.Background(), d); err != nil {
			if !strings.Contains(string(replies), d.Password) {
				require.NotContains(t, err.Error(), d.Password)
			}
			require.Empty(t, d.Conn.Unread)
			return
		}
		require.Contains(t, string(replies), "PONG")
		if len(d.Conn.Unread) > 0 {
			require.Contains(t, ">|", string(d.Conn.Unread[:1]))
		}
	})
}
