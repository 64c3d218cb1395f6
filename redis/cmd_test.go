package redis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

var (
	_ fdengine.Command   = (*Cmd)(nil)
	_ fdengine.Speccer   = (*Cmd)(nil)
	_ fdengine.Command   = (*Tx)(nil)
	_ fdengine.Speccer   = (*Tx)(nil)
	_ fdengine.Verdicter = (*Tx)(nil)
	_ fdengine.Submitter = (*Client)(nil)
)

// answered is a command that was encoded and got that reply.
func answered(t *testing.T, frame string) *Cmd {
	c := Get("k")
	_, err := c.AppendRequest(nil)
	require.NoError(t, err)
	_ = c.DecodeReply(fdengine.Reply{Frame: []byte(frame)})
	return c
}

func TestCommandsAreEncodedAsGiven(t *testing.T) {
	for want, c := range map[string]*Cmd{
		"SET k v EX 10":            Set("k", "v").Arg("EX").ArgInt(10),
		"SET k bytes":              Set("k", []byte("bytes")),
		"GET k":                    Get("k"),
		"INCR k":                   Incr("k"),
		"INCRBY k -5":              IncrBy("k", -5),
		"DEL a b":                  Del("a", "b"),
		"EXISTS a b":               Exists("a", "b"),
		"PEXPIRE k 1500":           Expire("k", 1500*time.Millisecond),
		"PEXPIRE k 2":              Expire("k", time.Millisecond+1),
		"PEXPIRE k -1":             Expire("k", -time.Millisecond),
		"LPUSH l a b":              LPush("l", "a", "b"),
		"RPUSH l a":                RPush("l", []byte("a")),
		"HSET h f v g w":           HSet("h", "f", "v", "g", "w"),
		"HGET h f":                 HGet("h", "f"),
		"HGETALL h":                HGetAll("h"),
		"SADD s a b":               SAdd("s", "a", "b"),
		"XADD s * f v":             XAdd("s", "*", "f", "v"),
		"PUBLISH c m":              Publish("c", "m"),
		"PING":                     Ping(),
		"ECHO m":                   Echo("m"),
		"X 1 2 -3 4 1.5 0.5 1 b s": NewCmd("X", 1, int64(2), int8(-3), uint64(4), 1.5, float32(0.5), true, []byte("b"), "s"),
		"X 18446744073709551615":   Build("X").ArgUint(1<<64 - 1),
		"X 1.25":                   Build("X").ArgFloat(1.25),
	} {
		got, err := c.AppendRequest([]byte(nil))
		require.NoError(t, err)
		require.Equal(t, []string{want}, encoded(t, got))
	}
}

func TestArgumentsThatCannotBeSentFailTheCommandWithoutTheirValue(t *testing.T) {
	for _, c := range []*Cmd{
		NewCmd("SET", "k", nil), NewCmd("SET", "k", time.Second), NewCmd("SET", "k", struct{ secret string }{"hunter2"}), NewCmd(), NewCmd(5, "x"),
	} {
		got, err := c.AppendRequest([]byte("x"))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
		require.Equal(t, "x", string(got))
	}
}

func TestSettingsReachTheSpec(t *testing.T) {
	require.Equal(t, fdengine.Spec{Class: carry.Replay}, Get("k").Spec())
	require.Equal(t, fdengine.Spec{}, Incr("k").Spec())
	require.Equal(t, fdengine.Spec{Class: carry.Replay, Budget: 2, Timeout: time.Second},
		Incr("k").WithClass(carry.Replay).WithBudget(2).WithTimeout(time.Second).Spec())
	require.Equal(t, fdengine.Spec{Budget: -1}, Get("k").WithClass(carry.NoRetry).WithBudget(-1).Spec())
	require.Equal(t, carry.NoRetry, Set("k", "v").Arg("NX").Class())
	c := Set("k", "v")
	require.Equal(t, carry.Replay, c.Class())
	require.Equal(t, carry.NoRetry, c.Arg("NX").Class(), "what is added later counts")
}

func TestRepliesAreReadAsTheTypeAskedFor(t *testing.T) {
	n, err := answered(t, ":5\r\n").Int64()
	require.NoError(t, err)
	require.EqualValues(t, 5, n)
	f, err := answered(t, ",1.5\r\n").Float64()
	require.NoError(t, err)
	require.Equal(t, 1.5, f)
	b, err := answered(t, ok).Bool()
	require.NoError(t, err)
	require.True(t, b)
	s, err := answered(t, "$2\r\nhi\r\n").Text()
	require.NoError(t, err)
	require.Equal(t, "hi", s)
	by, err := answered(t, "$2\r\nhi\r\n").Bytes()
	require.NoError(t, err)
	require.Equal(t, []byte("hi"), by)
	ss, err := answered(t, "*3\r\n+a\r\n$-1\r\n:1\r\n").Strings()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "", "1"}, ss)
	sl, err := answered(t, "*3\r\n+a\r\n$-1\r\n-ERR in\r\n").Slice()
	require.NoError(t, err)
	require.Equal(t, []any{"a", nil, &ServerError{"ERR", "in"}}, sl)
	for _, frame := range []string{"%1\r\n+a\r\n-X\r\n", "*2\r\n+a\r\n-X\r\n"} {
		m, err := answered(t, frame).Map()
		require.NoError(t, err)
		require.Equal(t, resp.Map{{Key: "a", Value: &ServerError{Code: "X"}}}, m)
	}
	v, err := answered(t, "*1\r\n%1\r\n+a\r\n-ERR in\r\n").Any()
	require.NoError(t, err)
	require.Equal(t, []any{resp.Map{{Key: "a", Value: &ServerError{"ERR", "in"}}}}, v)
	_, err = answered(t, "*0\r\n").Int64()
	var tm *resp.TypeMismatch
	require.ErrorAs(t, err, &tm)
}

func TestANullIsNilWhicheverWayItIsRead(t *testing.T) {
	for _, frame := range []string{"_\r\n", "$-1\r\n", "*-1\r\n"} {
		c := answered(t, frame)
		require.NoError(t, c.Err(), "a null is an answer")
		for name, read := range readers(c) {
			require.ErrorIs(t, read(), Nil, name)
		}
	}
}

func readers(c *Cmd) map[string]func() error {
	return map[string]func() error{
		"Int64":   func() error { _, err := c.Int64(); return err },
		"Float64": func() error { _, err := c.Float64(); return err },
		"Bool":    func() error { _, err := c.Bool(); return err },
		"Text":    func() error { _, err := c.Text(); return err },
		"Bytes":   func() error { _, err := c.Bytes(); return err },
		"Strings": func() error { _, err := c.Strings(); return err },
		"Slice":   func() error { _, err := c.Slice(); return err },
		"Map":     func() error { _, err := c.Map(); return err },
		"Any":     func() error { _, err := c.Any(); return err },
	}
}

func TestAnErrorReplyIsAnAnswerOfItsOwnType(t *testing.T) {
	for frame, want := range map[string]ServerError{
		"-WRONGTYPE Operation\r\n":      {"WRONGTYPE", "Operation"},
		"-ERR\r\n":                      {"ERR", ""},
		"-no code here\r\n":             {"", "no code here"},
		"!8\r\nERR a\r\nb\r\n":          {"ERR", "a\r\nb"},
		"|1\r\n+a\r\n+b\r\n-ERR x\r\n":  {"ERR", "x"},
		"-\r\n":                         {"", ""},
		"-NOAUTH Authentication r.\r\n": {"NOAUTH", "Authentication r."},
	} {
		c := Get("k")
		err := c.DecodeReply(fdengine.Reply{Frame: []byte(frame)})
		var se *ServerError
		require.ErrorAs(t, err, &se)
		require.Equal(t, want, *se)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		require.Equal(t, err, c.Err())
		for name, read := range readers(c) {
			require.Equal(t, err, read(), name)
		}
	}
	require.Equal(t, "redis: WRONGTYPE Operation", (&ServerError{"WRONGTYPE", "Operation"}).Error())
	require.Equal(t, "redis: only this", (&ServerError{"", "only this"}).Error())
}

func TestACommandWithoutReplySaysSo(t *testing.T) {
	c := Get("k")
	for name, read := range readers(c) {
		require.ErrorIs(t, read(), ErrNoReply, name)
	}
	require.ErrorIs(t, c.Err(), ErrNoReply)
	c = answered(t, ok)
	_, err := c.AppendRequest(nil)
	require.NoError(t, err)
	require.ErrorIs(t, c.Err(), ErrNoReply, "the reply of the use before is not this one's")
}

func TestAReplyDoesNotShareTheEnginesMemory(t *testing.T) {
	for _, size := range []int{3, 500} {
		frame := []byte("+" + strings.Repeat("a", size) + "\r\n")
		c := answered(t, string(frame))
		_ = c.DecodeReply(fdengine.Reply{Frame: frame})
		clear(frame)
		s, err := c.Text()
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("a", size), s)
	}
}

func TestResetMakesANewCommandOfTheOldMemory(t *testing.T) {
	c := NewCmd("SET", "a", "b", "PX", 5).WithClass(carry.NoRetry).WithBudget(3).WithTimeout(1)
	_ = c.DecodeReply(fdengine.Reply{Frame: []byte("-ERR x\r\n")})
	c.Reset("GET").Arg("k")
	require.Equal(t, fdengine.Spec{Class: carry.Replay}, c.Spec())
	require.ErrorIs(t, c.Err(), ErrNoReply)
	got, err := c.AppendRequest(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"GET k"}, encoded(t, got))
	bad := NewCmd("SET", nil)
	require.Error(t, bad.check())
	require.NoError(t, bad.Reset("PING").check())

	buf, reply := make([]byte, 0, 256), fdengine.Reply{Frame: []byte("$5\r\nhello\r\n")}
	value := []byte("value")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Reset("SET").Arg("key").ArgBytes(value).Arg("PX").ArgInt(1000)
		_ = c.Spec()
		if _, err := c.AppendRequest(buf); err != nil {
			panic(err)
		}
		if err := c.DecodeReply(reply); err != nil {
			panic(err)
		}
		if b, err := c.Bytes(); err != nil || len(b) != 5 {
			panic("wrong reply")
		}
	}))
	_ = c.DecodeReply(fdengine.Reply{Frame: []byte("$100000\r\n" + strings.Repeat("x", 100_000) + "\r\n")})
	c.Reset("GET")
	require.Less(t, cap(c.reply), maxKept, "a large reply is let go")
}

func TestErrorsOfTheBindingAreToldApart(t *testing.T) {
	require.Equal(t, Nil, own(resp.ErrNull))
	cause := errors.New("x")
	require.Equal(t, cause, own(cause))
	require.NoError(t, own(nil))
}

func BenchmarkSetEncodeDecode(b *testing.B) {
	var c Cmd
	buf, reply := make([]byte, 0, 256), fdengine.Reply{Frame: []byte(ok)}
	val := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		c.Reset("SET").Arg("key:000000000001").ArgBytes(val)
		_ = c.Spec()
		_, _ = c.AppendRequest(buf)
		_ = c.DecodeReply(reply)
	}
}
