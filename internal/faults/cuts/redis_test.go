package cuts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/redis"
)

// redisServer speaks version 2, or version 3 with all that this adds: pushes before answers and attributes around
// them. ECHO and what a transaction queues is carried out by noting its word.
type redisServer struct{ three bool }

func (redisServer) next(buf []byte) (words []string, n int) {
	count, pos, ok := header(buf, 0)
	if !ok {
		return nil, 0
	}
	for range count {
		var size int
		if size, pos, ok = header(buf, pos); !ok || len(buf) < pos+size+2 {
			return nil, 0
		}
		words = append(words, string(buf[pos:pos+size]))
		pos += size + 2
	}
	return words, pos
}

// header reads the number in a line of a type byte and a number.
func header(buf []byte, pos int) (n, next int, ok bool) {
	end := bytes.IndexByte(buf[pos:], '\n')
	if end < 0 {
		return 0, 0, false
	}
	n, err := strconv.Atoi(string(buf[pos+1 : pos+end-1]))
	return n, pos + end + 1, err == nil
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func (d redisServer) handle(c *served, words []string) (reply string, greeted bool) {
	switch words[0] + " " + strings.Join(words[1:min(2, len(words))], "") {
	case "HELLO 3":
		return "%1\r\n+server\r\n+redis\r\n", false
	case "CLIENT ID":
		return fmt.Sprintf(":%d\r\n", c.index+1), false
	case "CLIENT INFO":
		return bulk(fmt.Sprintf("id=%d addr=c:%d", c.index+1, c.index+1)), false
	case "CLIENT KILL":
		if id, _ := strconv.Atoi(words[3]); c.w.kill(id) {
			return ":1\r\n", false
		}
		return ":0\r\n", false
	case "PING ":
		return "+PONG\r\n", true
	case "MULTI ":
		c.multi = true
		return "+OK\r\n", false
	case "EXEC ":
		c.multi = false
		reply = fmt.Sprintf("*%d\r\n", len(c.queued))
		for _, token := range c.queued {
			c.ran = append(c.ran, token)
			reply += bulk(token)
		}
		c.queued = nil
		return d.dress(reply), false
	}
	if c.multi {
		c.queued = append(c.queued, words[1])
		return "+QUEUED\r\n", false
	}
	c.ran = append(c.ran, words[1])
	return d.dress(bulk(words[1])), false
}

func (d redisServer) dress(reply string) string {
	if d.three {
		return ">2\r\n+news\r\n:1\r\n|1\r\n+ttl\r\n:5\r\n" + reply
	}
	return reply
}

// redisKit is a redis client over the given version.
func redisKit(version int) kit {
	return kit{
		name:    fmt.Sprintf("redis version %d", version),
		dialect: func() dialect { return redisServer{three: version == 3} },
		build: func(net *memnet.Network, v variant) (client, *pipeline, error) {
			c, err := redis.New(redis.Options{Addr: "server", DialFunc: net.Dial, Protocol: version, Engine: engineOptions})
			return c, redisCalls(v), err
		},
	}
}

func redisCalls(v variant) *pipeline {
	echo := func(name string, replay bool) *call {
		cmd := redis.Echo(name).WithClass(class(replay))
		return &call{name: name, cmd: cmd, replay: replay, tokens: []string{name}, own: func() error {
			got, err := cmd.Text()
			return same(name, got, err)
		}, enc: encode(redis.Echo(name))}
	}
	tx := func(name string, replay bool) *call {
		make := func() *redis.Tx {
			return redis.NewTx(redis.Echo(name+"1").WithClass(carry.Replay), redis.Echo(name+"2").WithClass(carry.Replay))
		}
		t := make()
		if replay {
			t.AllowReplay()
		}
		return &call{name: name, cmd: t, replay: replay, tokens: []string{name + "1", name + "2"}, own: func() error {
			var errs []error
			for i, c := range t.Cmds() {
				got, err := c.Text()
				errs = append(errs, same(fmt.Sprint(name, i+1), got, err))
			}
			return errors.Join(errs...)
		}, enc: encode(make())}
	}
	ghost, flow := echo("ghost", v.ghostReplay), echo("flow", v.flowReplay)
	ghost.role, flow.role = leaves, streams
	p := &pipeline{
		five:  []*call{echo("safe", true), tx("tx", v.pieceReplay), ghost, flow, echo("once", false)},
		after: echo("after", true),
		next:  echo("next", true),
	}
	p.rotate(v.rotate)
	return p
}

// encode is what a command puts on the wire.
func encode(cmd fdengine.Command) []byte {
	b, err := cmd.AppendRequest(nil)
	if err != nil {
		panic(err)
	}
	return b
}

func class(replay bool) carry.Class {
	if replay {
		return carry.Replay
	}
	return carry.NoRetry
}

func same(want, got string, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("%s got the reply of %q", want, got)
	}
	return err
}

var _ client = (*redis.Client)(nil)

// client is what both bindings offer.
type client interface {
	Do(ctx context.Context, cmd fdengine.Command) error
	Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error
	Stream() *fdengine.Stream
	Engine() *fdengine.Engine
	Shutdown(ctx context.Context) (fdengine.Report, error)
	Close() error
	Done() <-chan struct{}
}
