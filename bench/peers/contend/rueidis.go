package contend

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

func rueidisPeers() []Contender {
	open := func(delay time.Duration) func(context.Context, Target) (Client, error) {
		return func(_ context.Context, t Target) (Client, error) {
			c, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{t.Addr}, ForceSingleClient: true, DisableCache: true,
				PipelineMultiplex: -1, MaxFlushDelay: delay,
			})
			if err != nil {
				return nil, err
			}
			return &rueidisClient{c, t}, nil
		}
	}
	return []Contender{
		{Name: "rueidis", Setting: "one connection (PipelineMultiplex -1), pinned commands", Group: Peer, Server: "resp", Default: true, Open: open(0)},
		{Name: "rueidis 20us", Setting: "one connection, MaxFlushDelay 20 us, pinned commands", Group: Peer, Server: "resp", Open: open(20 * time.Microsecond)},
	}
}

type rueidisClient struct {
	c rueidis.Client
	t Target
}

func (r *rueidisClient) Close() error {
	r.c.Close()
	return nil
}

func (r *rueidisClient) set(i int) rueidis.Completed {
	return r.c.B().Set().Key(key(i)).Value(r.t.value()).Build().Pin()
}

func (r *rueidisClient) get(i int) rueidis.Completed { return r.c.B().Get().Key(key(i)).Build().Pin() }

func (r *rueidisClient) Caller(i int) Caller {
	if r.t.Get {
		return &rueidisCaller{r.c, r.get(i), r.t.value()}
	}
	return &rueidisCaller{r.c, r.set(i), ok}
}

type rueidisCaller struct {
	c    rueidis.Client
	cmd  rueidis.Completed
	want string
}

func (c *rueidisCaller) Call() error {
	return rueidisCheck(c.c.Do(context.Background(), c.cmd), c.want)
}

func rueidisCheck(res rueidis.RedisResult, want string) error {
	got, err := res.ToString()
	if err == nil && got != want {
		err = wrong("rueidis", got)
	}
	return err
}

func (r *rueidisClient) Batch(i, size int) Caller {
	b := &rueidisBatch{c: r.c}
	for j := range size {
		b.cmds = append(b.cmds, r.set(i*size+j))
	}
	return b
}

type rueidisBatch struct {
	c    rueidis.Client
	cmds []rueidis.Completed
}

func (b *rueidisBatch) Call() error {
	for _, res := range b.c.DoMulti(context.Background(), b.cmds...) {
		if err := rueidisCheck(res, ok); err != nil {
			return err
		}
	}
	return nil
}
