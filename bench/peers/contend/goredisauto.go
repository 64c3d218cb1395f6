package contend

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

func goredisAutoPeers() []Contender {
	open := func(tune func(*redis.AutoPipelineOptions)) func(context.Context, Target) (Client, error) {
		return func(_ context.Context, t Target) (Client, error) { return openGoredisAuto(t, tune) }
	}
	return []Contender{
		{
			Name: "go-redis auto", Setting: "AutoPipeline, half duplex, its defaults", Group: Peer, Server: "resp", Default: true,
			Open: open(func(*redis.AutoPipelineOptions) {}),
		},
		{
			Name: "go-redis duplex", Setting: "AutoPipeline, FullDuplex", Group: Peer, Server: "resp", Default: true,
			Open: open(func(o *redis.AutoPipelineOptions) { o.FullDuplex = true }),
		},
		{
			Name: "go-redis duplex 250us", Setting: "AutoPipeline, FullDuplex, MaxFlushDelay 250 us", Group: Peer, Server: "resp",
			Open: open(func(o *redis.AutoPipelineOptions) { o.FullDuplex, o.MaxFlushDelay = true, 250*time.Microsecond }),
		},
	}
}

// goredisAuto has both faces of an automatic pipeline; each is made when it is first asked for.
type goredisAuto struct {
	c                 *redis.Client
	t                 Target
	tune              func(*redis.AutoPipelineOptions)
	waiting, deferred *redis.AutoPipeliner // deferred: nil until Stream
}

func openGoredisAuto(t Target, tune func(*redis.AutoPipelineOptions)) (Client, error) {
	a := &goredisAuto{c: newGoredis(t, nil), t: t, tune: tune}
	o := redis.DefaultBlockingAutoPipelineOptions()
	tune(o)
	var err error
	if a.waiting, err = a.c.AutoPipelineWithOptions(o); err != nil {
		return nil, errors.Join(err, a.c.Close())
	}
	return a, nil
}

func (a *goredisAuto) Close() error {
	err := a.waiting.Close()
	if a.deferred != nil {
		err = errors.Join(err, a.deferred.Close())
	}
	return errors.Join(err, a.c.Close())
}

func (a *goredisAuto) Caller(i int) Caller { return newGoredisCaller(a.waiting, i, a.t) }

// Batch is a pipeline made from the automatic one: in full duplex it travels on the shared connection.
func (a *goredisAuto) Batch(i, size int) Caller {
	return newGoredisBatch(a.waiting.Pipeline, i, size, a.t)
}

// streamCallers is how many goroutines share a window of futures: one alone would wait for its whole window.
const streamCallers = 16

// Stream uses the deferred face, with as many futures as the window has room for.
func (a *goredisAuto) Stream(window int) (Flow, error) {
	o := redis.DefaultAutoPipelineOptions()
	a.tune(o)
	face, err := a.c.AsyncAutoPipelineWithOptions(o)
	if err != nil {
		return nil, err
	}
	a.deferred = face
	return &goredisFlow{face, max(1, window/streamCallers), a.t.value()}, nil
}

type goredisFlow struct {
	face *redis.AutoPipeliner
	each int // futures of one goroutine
	val  any
}

func (f *goredisFlow) Run(more func() bool) (int64, error) {
	var (
		wg     sync.WaitGroup
		counts [streamCallers]int64
		errs   [streamCallers]error
	)
	for i := range streamCallers {
		wg.Go(func() { counts[i], errs[i] = goredisWindow(f.face, i, f.each, f.val, more) })
	}
	wg.Wait()
	var n int64
	for _, c := range counts {
		n += c
	}
	return n, errors.Join(errs[:]...)
}

func goredisWindow(face *redis.AutoPipeliner, i, size int, val any, more func() bool) (n int64, err error) {
	var (
		cmds = make([]*redis.StatusCmd, size)
		keys = make([]string, size)
	)
	for j := range keys {
		keys[j] = key(i*size + j)
	}
	for more() {
		for j, k := range keys {
			cmds[j] = face.Set(context.Background(), k, val, 0)
		}
		for _, c := range cmds {
			if err := goredisCheck(c); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
