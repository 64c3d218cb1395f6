package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
)

// fills are the builders for a Cmd that is used again, with what they must put on the wire.
var fills = map[string]func(c *Cmd){
	"GET k":                func(c *Cmd) { FillGet(c, "k") },
	"SET k v":              func(c *Cmd) { FillSet(c, "k", payload) },
	"SET k text":           func(c *Cmd) { FillSet(c, "k", "text") },
	"INCR k":               func(c *Cmd) { FillIncr(c, "k") },
	"INCRBY k -9000000000": func(c *Cmd) { FillIncrBy(c, "k", -9000000000) },
	"DEL a b c d e":        func(c *Cmd) { FillDel(c, "a", "b", "c", "d", "e") },
	"PEXPIRE k 60000":      func(c *Cmd) { FillExpire(c, "k", time.Minute) },
	"LPUSH l v":            func(c *Cmd) { FillLPush(c, "l", payload) },
	"RPUSH l v v":          func(c *Cmd) { FillRPush(c, "l", payload, payload) },
	"HSET h f v g w":       func(c *Cmd) { FillHSet(c, "h", "f", "v", "g", "w") },
	"SADD s v":             func(c *Cmd) { FillSAdd(c, "s", payload) },
	"XADD x * f v":         func(c *Cmd) { FillXAdd(c, "x", "*", field, payload) },
	"PUBLISH c v":          func(c *Cmd) { FillPublish(c, "c", payload) },
	"XADD x MAXLEN ~ 100 * f v": func(c *Cmd) {
		c.Reset("XADD").Arg("x").Arg("MAXLEN").Arg("~").ArgInt(100).Arg("*").Arg("f").ArgBytes(payload)
	},
	"SET k 0.5 PX 1500": func(c *Cmd) { c.Reset("SET").Arg("k").ArgFloat(0.5).Arg("PX").ArgUint(1500) },
}

var payload, field = []byte("v"), []byte("f")

func TestACommandUsedAgainIsTheNewOneOnly(t *testing.T) {
	c := split("SOMETHING with many words in it that are longer").WithBudget(3).WithTimeout(time.Second)
	for want, fill := range fills {
		fill(c)
		got, err := c.AppendRequest(nil)
		require.NoError(t, err)
		require.Equal(t, []string{want}, encoded(t, got))
		require.Equal(t, fdengine.Spec{Class: split(want).Class()}, c.Spec(), want)
	}
}

func TestBuildersAndRepliesOfAUsedCommandAllocNothing(t *testing.T) {
	for want, fill := range fills {
		c := split("a b c d e f g h i")
		dst := make([]byte, 0, 1024)
		var value []byte = make([]byte, 0, 64)
		require.Zero(t, testing.AllocsPerRun(200, func() {
			fill(c)
			var cmd fdengine.Command = c
			_ = c.Spec()
			if _, err := cmd.AppendRequest(dst); err != nil {
				panic(err)
			}
			if err := cmd.DecodeReply(fdengine.Reply{Frame: bulkReply}); err != nil {
				panic(err)
			}
			n, err := c.Int64()
			if err != nil || n != 12345 {
				panic("wrong number")
			}
			if _, err = c.Float64(); err != nil {
				panic(err)
			}
			if value, err = c.Append(value[:0]); err != nil || len(value) != 5 {
				panic("wrong bytes")
			}
		}), want)
	}
}

var bulkReply = []byte("$5\r\n12345\r\n")
