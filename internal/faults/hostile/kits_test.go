package hostile

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/proto/resp"
	"github.com/fdengine/fullduplex/redis"
)

// client is what both bindings offer.
type client interface {
	Do(ctx context.Context, cmd fdengine.Command) error
	Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error
	Engine() *fdengine.Engine
	Shutdown(ctx context.Context) (fdengine.Report, error)
	Close() error
	Done() <-chan struct{}
}

// kit is one binding, with the honest server for it.
type kit struct {
	name   string
	honest func() honest
	open   func(network *memnet.Network, secure bool, o fdengine.Options) (client, error)
	// command makes one that carries token and may be padded to a size; own says why its reply is not its own.
	command func(token string, replay bool, size int) (cmd fdengine.Command, own func() error)
}

func redisKit() kit {
	return kit{
		name:   "redis",
		honest: func() honest { return redisHonest{} },
		open: func(network *memnet.Network, secure bool, o fdengine.Options) (client, error) {
			ro := redis.Options{Addr: "server:1", DialFunc: network.Dial, Engine: o}
			if secure {
				ro.TLS = trusting()
			}
			return redis.New(ro)
		},
		command: func(token string, replay bool, size int) (fdengine.Command, func() error) {
			cmd := redis.Echo(pad(token, size)).WithClass(class(replay))
			return cmd, func() error {
				got, err := cmd.Text()
				return same(token, got, err)
			}
		},
	}
}

func beanstalkKit() kit {
	return kit{
		name:   "beanstalkd",
		honest: func() honest { return beanstalkHonest{} },
		open: func(network *memnet.Network, secure bool, o fdengine.Options) (client, error) {
			bo := beanstalkd.Options{Addr: "server:1", DialFunc: network.Dial, Engine: o}
			if secure {
				bo.TLS = trusting()
			}
			return beanstalkd.New(bo)
		},
		command: func(token string, replay bool, size int) (fdengine.Command, func() error) {
			p := &beanstalkd.Put{Body: []byte(pad(token, size)), Replay: replay}
			return p, func() error { return same(strconv.FormatUint(number(token), 10), strconv.FormatUint(p.ID, 10), nil) }
		},
	}
}

func kits() []kit { return []kit{redisKit(), beanstalkKit()} }

func pad(token string, size int) string { return token + strings.Repeat(" ", max(0, size-len(token))) }

func class(replay bool) carry.Class {
	if replay {
		return carry.Replay
	}
	return carry.NoRetry
}

func same(want, got string, err error) error {
	if err == nil && strings.TrimSpace(got) != want {
		err = fmt.Errorf("%.40s got the reply %.40q", want, got)
	}
	return err
}

// number is the id of the job that stands for a token.
func number(token string) (n uint64) {
	for _, b := range []byte(token) {
		n = n*131 + uint64(b)
	}
	return n>>1 + 1
}

type redisHonest struct{}

func (redisHonest) next(buf []byte) (r request) {
	n, _, _, err := resp.NewScanner(resp.Limits{}).Next(buf)
	if err != nil || n == 0 {
		return r
	}
	words := resp.NewReader(buf[:n])
	count, _ := words.Array()
	verb, _ := words.Text()
	arg := ""
	if count > 1 {
		arg, _ = words.Text()
	}
	r.size = n
	switch verb + " " + arg {
	case "HELLO 3":
		r.answer = "%1\r\n+server\r\n+redis\r\n"
	case "CLIENT ID":
		r.answer = ":1\r\n"
	case "CLIENT INFO":
		r.answer = "$14\r\nid=1 addr=me:1\r\n"
	case "CLIENT KILL":
		r.answer = ":0\r\n"
	case "PING ":
		r.answer, r.ends = "+PONG\r\n", true
	default:
		r.token = strings.TrimSpace(arg)
		r.answer = fmt.Sprintf("$%d\r\n%s\r\n", len(r.token), r.token)
	}
	return r
}

type beanstalkHonest struct{}

func (beanstalkHonest) next(buf []byte) (r request) {
	end := bytes.Index(buf, []byte("\r\n"))
	if end < 0 {
		return r
	}
	words := strings.Fields(string(buf[:end]))
	r.size = end + 2
	switch words[0] {
	case "use":
		r.answer = "USING default\r\n"
	case "watch", "ignore":
		r.answer = "WATCHING 1\r\n"
	case "list-tube-used":
		r.answer, r.ends = "USING default\r\n", true
	case "put":
		size, _ := strconv.Atoi(words[4])
		if r.size += size + 2; len(buf) < r.size {
			return request{}
		}
		r.token = strings.TrimSpace(string(buf[end+2 : end+2+size]))
		r.answer = fmt.Sprintf("INSERTED %d\r\n", number(r.token))
	default: // reserve-with-timeout
		r.token, r.answer = words[0], "TIMED_OUT\r\n"
	}
	return r
}
