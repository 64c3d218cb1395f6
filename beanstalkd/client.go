package beanstalkd

import (
	"context"
	"errors"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
)

// Client puts jobs and asks questions over one connection that all callers share. Its methods may be called from
// any goroutine. It dials when there is work, and again after a failure.
type Client struct {
	engine *fdengine.Engine
	pool   *pool.Pool
	done   chan struct{}
}

// New makes a Client. It does not dial; an error means that o is not valid.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	p, err := pool.New(o.pool(nil))
	if err != nil {
		return nil, err
	}
	e, err := fdengine.New(o.engine(p))
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	c := &Client{engine: e, pool: p, done: make(chan struct{})}
	go reap(e, p, c.done)
	return c, nil
}

// reap closes the pool when the engine has ended, and tells done.
func reap(e *fdengine.Engine, p *pool.Pool, done chan struct{}) {
	<-e.Done()
	_ = p.Close() // reports nothing that a caller could act on
	<-p.Done()
	close(done)
}

// Do sends cmd, a *Put or a *Cmd, and waits for its reply. The error is nil, a *ServerError, another error of this
// package, an *fdengine.CallError, or what refused the command; fdengine.FateOf says whether it may have been carried
// out. When ctx ends first, Do returns at once and the engine does not touch cmd any more.
func (c *Client) Do(ctx context.Context, cmd fdengine.Command) error { return c.engine.Do(ctx, cmd) }

// Submit queues cmd; done is told its outcome, exactly once, if and only if Submit returns nil. ctx bounds the
// wait for room in the queue, and its deadline the command.
func (c *Client) Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error {
	return c.engine.Submit(ctx, cmd, done)
}

// TrySubmit is Submit without waiting: fdengine.ErrQueueFull when there is no room.
func (c *Client) TrySubmit(cmd fdengine.Command, done fdengine.Completion) error {
	return c.engine.TrySubmit(cmd, done)
}

// SubmitBatch is Submit for several commands with the same completion, cheaper than one by one. It returns how many were queued; with an error
// cmds[n] is the one it is about, and none behind it was queued. See fdengine.Engine.SubmitBatch.
func (c *Client) SubmitBatch(ctx context.Context, cmds []fdengine.Command, done fdengine.Completion) (n int, err error) {
	return c.engine.SubmitBatch(ctx, cmds, done)
}

// DoBatch sends commands in order and waits for all; errs[i] is the outcome of cmds[i]. Each stands alone.
func (c *Client) DoBatch(ctx context.Context, cmds []fdengine.Command, errs []error) error {
	return c.engine.DoBatch(ctx, cmds, errs)
}

// Stream returns a handle for commands of which none is carried out after a failed one before it.
func (c *Client) Stream() *fdengine.Stream { return c.engine.Stream() }

// Ping asks the server which tube is used.
func (c *Client) Ping(ctx context.Context) error { return c.engine.Ping(ctx) }

// Ready is closed when there has been a first usable connection. The client dials only when there is work: Ping
// asks for one.
func (c *Client) Ready() <-chan struct{} { return c.engine.Ready() }

// Engine is the engine behind the client, for what the client does not offer. Closing it closes the client.
func (c *Client) Engine() *fdengine.Engine { return c.engine }

// Usage is a snapshot of engine and pool.
type Usage struct {
	Engine fdengine.Stats
	Pool   pool.Stats
}

// Usage returns a snapshot; its parts are taken one after the other.
func (c *Client) Usage() Usage { return Usage{Engine: c.engine.Stats(), Pool: c.pool.Stats()} }

// Shutdown takes no more commands, waits until those accepted have settled, or ctx ends and the rest is failed,
// and reports how they ended. It may be called again and by several goroutines.
func (c *Client) Shutdown(ctx context.Context) (fdengine.Report, error) {
	return c.engine.Shutdown(ctx)
}

// Close fails what is unsettled and ends the client, without waiting.
func (c *Client) Close() error { return c.engine.Close() }

// Done is closed when the client has ended and its goroutines and connections are gone.
func (c *Client) Done() <-chan struct{} { return c.done }
