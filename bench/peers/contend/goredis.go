package contend

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

func goredisPeers() []Contender {
	return []Contender{{
		Name: "go-redis pool", Setting: "defaults: a connection per waiting caller, 10 per CPU", Group: Peer, Server: "resp",
		Default: true, Sync: true,
		Open: func(_ context.Context, t Target) (Client, error) { return &goredisPool{newGoredis(t, nil), t}, nil },
	}}
}

// newGoredis makes a client with its defaults. Notifications of maintenance are off, which is what they end up being
// with a server that does not know them.
func newGoredis(t Target, auto *redis.AutoPipelineOptions) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: t.Addr, AutoPipelineOptions: auto,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

type goredisPool struct {
	c *redis.Client
	t Target
}

func (p *goredisPool) Close() error             { return p.c.Close() }
func (p *goredisPool) Caller(i int) Caller      { return newGoredisCaller(p.c, i, p.t) }
func (p *goredisPool) Batch(i, size int) Caller { return newGoredisBatch(p.c.Pipeline, i, size, p.t) }

func newGoredisCaller(c redis.Cmdable, i int, t Target) Caller {
	if t.Get {
		return &goredisReader{c, key(i), t.value()}
	}
	return &goredisCaller{c, key(i), t.value()}
}

type goredisReader struct {
	c         redis.Cmdable
	key, want string
}

func (c *goredisReader) Call() error {
	got, err := c.c.Get(context.Background(), c.key).Result()
	if err == nil && got != c.want {
		err = wrong("go-redis", got)
	}
	return err
}

type goredisCaller struct {
	c   redis.Cmdable
	key string
	val any
}

func (c *goredisCaller) Call() error {
	return goredisCheck(c.c.Set(context.Background(), c.key, c.val, 0))
}

func goredisCheck(cmd *redis.StatusCmd) error {
	got, err := cmd.Result()
	if err == nil && got != ok {
		err = wrong("go-redis", got)
	}
	return err
}

func newGoredisBatch(pipe func() redis.Pipeliner, i, size int, t Target) Caller {
	b := &goredisBatch{pipe: pipe, val: t.value()}
	for j := range size {
		b.keys = append(b.keys, key(i*size+j))
	}
	return b
}

type goredisBatch struct {
	pipe func() redis.Pipeliner
	keys []string
	val  any
}

var errNoStatus = errors.New("go-redis: a command of the pipeline is of another type")

func (b *goredisBatch) Call() error {
	p := b.pipe()
	for _, k := range b.keys {
		p.Set(context.Background(), k, b.val, 0)
	}
	cmds, err := p.Exec(context.Background())
	if err != nil {
		return err
	}
	if len(cmds) != len(b.keys) {
		return errNoStatus
	}
	for _, c := range cmds {
		s, is := c.(*redis.StatusCmd)
		if !is {
			return errNoStatus
		}
		if err := goredisCheck(s); err != nil {
			return err
		}
	}
	return nil
}
