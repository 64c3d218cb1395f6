package contend

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"
)

func valkeyPeers() []Contender {
	open := func(delay time.Duration) func(context.Context, Target) (Client, error) {
		return func(_ context.Context, t Target) (Client, error) {
			c, err := valkey.NewClient(valkey.ClientOption{
				InitAddress: []string{t.Addr}, ForceSingleClient: true, DisableCache: true,
				PipelineMultiplex: -1, MaxFlushDelay: delay,
			})
			if err != nil {
				return nil, err
			}
			return &valkeyClient{c, t}, nil
		}
	}
	return []Contender{
		{Name: "valkey-go", Setting: "one connection (PipelineMultiplex -1), pinned commands", Group: Peer, Server: "resp", Default: true, Open: open(0)},
		{Name: "valkey-go 20us", Setting: "one connection, MaxFlushDelay 20 us, pinned commands", Group: Peer, Server: "resp", Open: open(20 * time.Microsecond)},
	}
}

type valkeyClient struct {
	c valkey.Client
	t Target
}

func (r *valkeyClient) Close() error {
	r.c.Close()
	return nil
}

func (r *valkeyClient) set(i int) valkey.Completed {
	return r.c.B().Set().Key(key(i)).Value(r.t.value()).Build().Pin()
}

func (r *valkeyClient) get(i int) valkey.Completed { return r.c.B().Get().Key(key(i)).Build().Pin() }

func (r *valkeyClient) Caller(i int) Caller {
	if r.t.Get {
		return &valkeyCaller{r.c, r.get(i), r.t.value()}
	}
	return &valkeyCaller{r.c, r.set(i), ok}
}

type valkeyCaller struct {
	c    valkey.Client
	cmd  valkey.Completed
	want string
}

func (c *valkeyCaller) Call() error { return valkeyCheck(c.c.Do(context.Background(), c.cmd), c.want) }

func valkeyCheck(res valkey.ValkeyResult, want string) error {
	got, err := res.ToString()
	if err == nil && got != want {
		err = wrong("valkey-go", got)
	}
	return err
}

func (r *valkeyClient) Batch(i, size int) Caller {
	b := &valkeyBatch{c: r.c}
	for j := range size {
		b.cmds = append(b.cmds, r.set(i*size+j))
	}
	return b
}

type valkeyBatch struct {
	c    valkey.Client
	cmds []valkey.Completed
}

func (b *valkeyBatch) Call() error {
	for _, res := range b.c.DoMulti(context.Background(), b.cmds...) {
		if err := valkeyCheck(res, ok); err != nil {
			return err
		}
	}
	return nil
}
