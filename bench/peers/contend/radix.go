package contend

import (
	"context"
	"time"

	"github.com/mediocregopher/radix/v4"
)

func radixPeers() []Contender {
	open := func(cfg radix.PoolConfig) func(context.Context, Target) (Client, error) {
		return func(ctx context.Context, t Target) (Client, error) {
			c, err := cfg.New(ctx, "tcp", t.Addr)
			if err != nil {
				return nil, err
			}
			return &radixClient{c, t}, nil
		}
	}
	return []Contender{
		{
			Name: "radix", Setting: "defaults: 4 shared connections", Group: Peer, Server: "resp", Default: true,
			Open: open(radix.PoolConfig{PingInterval: noPings}),
		},
		{
			Name: "radix 150us", Setting: "one connection, WriteFlushInterval 150 us", Group: Peer, Server: "resp",
			Open: open(radix.PoolConfig{
				PingInterval: noPings, Size: 1, Dialer: radix.Dialer{WriteFlushInterval: 150 * time.Microsecond},
			}),
		},
	}
}

const noPings = -1 // radix: no periodic ones

type radixClient struct {
	c radix.Client
	t Target
}

func (r *radixClient) Close() error { return r.c.Close() }
func (r *radixClient) Caller(i int) Caller {
	if r.t.Get {
		return &radixCaller{c: r.c, name: "GET", args: []string{key(i)}, want: r.t.value()}
	}
	return &radixCaller{c: r.c, name: "SET", args: []string{key(i), r.t.value()}, want: ok}
}

type radixCaller struct {
	c    radix.Client
	name string
	args []string
	want string
	got  string
}

func (c *radixCaller) Call() error {
	c.got = ""
	if err := c.c.Do(context.Background(), radix.Cmd(&c.got, c.name, c.args...)); err != nil {
		return err
	}
	if c.got != c.want {
		return wrong("radix", c.got)
	}
	return nil
}

func (r *radixClient) Batch(i, size int) Caller {
	b := &radixBatch{c: r.c, p: radix.NewPipeline(), got: make([]string, size)}
	for j := range size {
		b.args = append(b.args, []string{key(i*size + j), r.t.value()})
	}
	return b
}

type radixBatch struct {
	c    radix.Client
	p    *radix.Pipeline
	args [][]string
	got  []string
}

func (b *radixBatch) Call() error {
	b.p.Reset()
	for i, a := range b.args {
		b.got[i] = ""
		b.p.Append(radix.Cmd(&b.got[i], "SET", a...))
	}
	if err := b.c.Do(context.Background(), b.p); err != nil {
		return err
	}
	for _, got := range b.got {
		if got != ok {
			return wrong("radix", got)
		}
	}
	return nil
}
