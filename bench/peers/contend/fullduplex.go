package contend

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/redis"
)

func ours() []Contender {
	return []Contender{
		{
			Name: "fullduplex", Setting: "redis.Client, defaults, one Cmd per caller used again", Group: Ours, Server: "resp",
			Open: func(ctx context.Context, t Target) (Client, error) { return openFullduplex(ctx, t, newSet) },
		},
		{
			Name: "fullduplex raw", Setting: "fdengine with a command that is encoded before", Group: Ours, Server: "resp",
			Open: func(ctx context.Context, t Target) (Client, error) { return openFullduplex(ctx, t, newEncoded) },
		},
	}
}

// checked is a command and whether its reply was the one that was due. The engine is given the command itself, as a program
// would: methods promoted from an embedded one go through a copy of their arguments and results.
type checked interface {
	command() fdengine.Command
	check() error
}

// set is a SET with the reply it expects.
type set struct{ cmd *redis.Cmd }

func newSet(i int, t Target) checked {
	if t.Get {
		return get{redis.Get(key(i)), t.value()}
	}
	return set{redis.Set(key(i), t.value())}
}

// get is a GET with the value it expects.
type get struct {
	cmd  *redis.Cmd
	want string
}

func (g get) command() fdengine.Command { return g.cmd }

func (g get) check() error {
	got, err := g.cmd.Bytes()
	if err == nil && string(got) != g.want {
		err = wrong("fullduplex", string(got))
	}
	return err
}

func (s set) command() fdengine.Command { return s.cmd }

func (s set) check() error {
	got, err := s.cmd.Bytes()
	if err != nil {
		return err
	}
	if string(got) != ok {
		return wrong("fullduplex", string(got))
	}
	return nil
}

// encoded is a command that was encoded before and is checked by its decoder. It has no state: it may be under way
// many times at once.
type encoded struct {
	req  []byte
	want string
}

func newEncoded(i int, t Target) checked {
	want := "+OK\r\n"
	if t.Get {
		want = fmt.Sprintf("$%d\r\n%s\r\n", len(t.value()), t.value())
	}
	return &encoded{encodeCall(i, t), want}
}

// Spec says that storing the same value twice does no harm, as the class table of package redis does.
func (e *encoded) Spec() fdengine.Spec { return fdengine.Spec{Class: carry.Replay} }

func (e *encoded) AppendRequest(dst []byte) ([]byte, error) { return append(dst, e.req...), nil }

func (e *encoded) DecodeReply(r fdengine.Reply) error {
	if string(r.Frame) != e.want {
		return wrong("fullduplex raw", string(r.Frame))
	}
	return nil
}

func (e *encoded) command() fdengine.Command { return e }

func (e *encoded) check() error { return nil }

// fullduplex is a client of this repository and the kind of command it is used with.
type fullduplex struct {
	*redis.Client
	make   func(i int) checked
	limit  int            // bytes that may wait and be under way
	single bool           // asynchronous commands are submitted one by one
	flood  sync.WaitGroup // it ends when the client is closed
}

func openFullduplex(ctx context.Context, t Target, mk func(int, Target) checked) (Client, error) {
	engine := roomFor(t)
	c, err := redis.New(redis.Options{Addr: t.Addr, Engine: engine})
	if err != nil {
		return nil, err
	}
	if err := c.Ping(ctx); err != nil {
		_ = c.Close()
		<-c.Done()
		return nil, err
	}
	return &fullduplex{Client: c, make: func(i int) checked { return mk(i, t) }, limit: limitOf(engine), single: t.Single}, nil
}

// roomFor is what an engine needs to have that many commands under way; nothing when its defaults will do.
func roomFor(t Target) fdengine.Options {
	n := t.InFlight
	switch {
	case t.Window > 0:
		return fdengine.Options{Window: t.Window, Queue: max(1<<16, n)}
	case n <= 1<<16:
		return fdengine.Options{}
	}
	return fdengine.Options{Window: n + 64, WindowBytes: n * 256, ReadTimeout: time.Minute}
}

// defaultBytes are the limits of an engine that was given none, for the window and for the queue.
const defaultBytes = 64 << 20

func limitOf(o fdengine.Options) int {
	if o.WindowBytes == 0 {
		return 2 * defaultBytes
	}
	return o.WindowBytes + defaultBytes
}

// Calls implements Counting: the writes, and the reads that brought anything.
func (f *fullduplex) Calls() (writes, reads int64) {
	s := f.Stats().Engine
	return int64(s.Writes), int64(s.Reads)
}

func (f *fullduplex) Close() error {
	err := f.Client.Close()
	<-f.Done()
	f.flood.Wait()
	return err
}

func (f *fullduplex) Caller(i int) Caller {
	c := f.make(i)
	return &doCaller{f, c.command(), c}
}

type doCaller struct {
	f    *fullduplex
	cmd  fdengine.Command
	told checked
}

func (c *doCaller) Call() error {
	if err := c.f.Do(context.Background(), c.cmd); err != nil {
		return err
	}
	return c.told.check()
}

func (f *fullduplex) Batch(i, size int) Caller {
	b := &batchCaller{f: f, errs: make([]error, size)}
	for j := range size {
		c := f.make(i*size + j)
		b.checks = append(b.checks, c)
		b.cmds = append(b.cmds, c.command())
	}
	return b
}

type batchCaller struct {
	f      *fullduplex
	cmds   []fdengine.Command
	checks []checked
	errs   []error
}

func (b *batchCaller) Call() error {
	if err := b.f.DoBatch(context.Background(), b.cmds, b.errs); err != nil {
		return err
	}
	for _, c := range b.checks {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}
