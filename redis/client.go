package redis

import (
	"context"
	"errors"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/lanes"
	"github.com/fdengine/fullduplex/pool"
)

// Client is one server, reached over one connection that all callers share, or over several with Options.Lanes. Its
// methods may be called from any goroutine. It dials when there is work, and again after a failure.
type Client struct {
	options Options
	engine  *fdengine.Engine // the only one, or the first lane's
	lanes   *lanes.Lanes     // nil: there is but one
	pools   []*pool.Pool     // by lane
	lender  *lender
	subs    subscriptions
	done    chan struct{}
}

// New makes a Client. It does not dial; an error means that o is not valid.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	lent, err := pool.New(o.lentPool())
	if err != nil {
		return nil, err
	}
	c := &Client{options: o.sealed(), done: make(chan struct{})}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, lent.Close())
	}
	c.lender = newLender(lent, o.lent(), o.lentEngine)
	go c.reap()
	return c, nil
}

// reap closes what else there is when the engines have ended, and tells Done.
func (c *Client) reap() {
	<-c.ended()
	c.subs.end()
	c.lender.end()
	for _, p := range c.pools {
		_ = p.Close() // reports nothing that a caller could act on
		<-p.Done()
	}
	close(c.done)
}

// Do sends cmd and waits for its reply. The error is nil, a *ServerError, an *fdengine.CallError, or what
// refused the command; fdengine.FateOf says whether it may have run. When ctx ends first, Do returns at once and
// the engine does not touch cmd any more.
func (c *Client) Do(ctx context.Context, cmd fdengine.Command) error {
	if c.lanes != nil {
		return c.lanes.Do(ctx, cmd)
	}
	return c.engine.Do(ctx, cmd)
}

// Submit queues cmd; done is told its outcome, exactly once, if and only if Submit returns nil. ctx bounds the
// wait for room in the queue, and its deadline the command.
func (c *Client) Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error {
	if c.lanes != nil {
		return c.lanes.Submit(ctx, cmd, done)
	}
	return c.engine.Submit(ctx, cmd, done)
}

// TrySubmit is Submit without waiting: fdengine.ErrQueueFull when there is no room.
func (c *Client) TrySubmit(cmd fdengine.Command, done fdengine.Completion) error {
	if c.lanes != nil {
		return c.lanes.TrySubmit(cmd, done)
	}
	return c.engine.TrySubmit(cmd, done)
}

// SubmitBatch is Submit for several commands with the same completion, cheaper than one by one. It returns how many were queued; with an error
// cmds[n] is the one it is about, and none behind it was queued. Over several lanes they are submitted one by one. See fdengine.Engine.SubmitBatch.
func (c *Client) SubmitBatch(ctx context.Context, cmds []fdengine.Command, done fdengine.Completion) (n int, err error) {
	if c.lanes != nil {
		return c.lanes.SubmitBatch(ctx, cmds, done)
	}
	return c.engine.SubmitBatch(ctx, cmds, done)
}

// DoBatch sends commands in order and waits for all; errs[i] is the outcome of cmds[i]. Each stands alone: use a
// Tx for all or nothing, a Stream for nothing after a failure. With Options.Lanes the order is that of each key; see
// lanes.Lanes.DoBatch.
func (c *Client) DoBatch(ctx context.Context, cmds []fdengine.Command, errs []error) error {
	if c.lanes != nil {
		return c.lanes.DoBatch(ctx, cmds, errs)
	}
	return c.engine.DoBatch(ctx, cmds, errs)
}

// Stream returns a handle for commands of which none runs after a failed one before it. With Options.Lanes it is on
// one of the shared connections and has no order to commands outside it: see StreamFor.
func (c *Client) Stream() *fdengine.Stream {
	if c.lanes != nil {
		return c.lanes.Stream()
	}
	return c.engine.Stream()
}

// Ping asks the server for a PONG, on each of the shared connections.
func (c *Client) Ping(ctx context.Context) error {
	if c.lanes != nil {
		return c.lanes.Ping(ctx)
	}
	return c.engine.Ping(ctx)
}

// Ready is closed when there has been a first usable connection. The client dials only when there is work: Ping
// asks for one.
func (c *Client) Ready() <-chan struct{} {
	if c.lanes != nil {
		return c.lanes.Ready()
	}
	return c.engine.Ready()
}

// Engine is the engine behind the client, with Options.Lanes the first of them, for what the client does not offer.
// Closing it closes the client.
func (c *Client) Engine() *fdengine.Engine { return c.engine }

// Stats is a snapshot of a client.
type Stats struct {
	Engine fdengine.Stats // of the shared connection; with Options.Lanes lanes.Sum of them
	Pool   pool.Stats     // likewise; FailedRounds is the largest
	Lent   pool.Stats     // of the connections of Blocking, Lend and Watch
}

// Stats returns a snapshot; its parts are taken one after the other.
func (c *Client) Stats() Stats {
	if c.lanes != nil {
		return Stats{Engine: c.lanes.Stats(), Pool: c.poolStats(), Lent: c.lender.pool.Stats()}
	}
	return Stats{Engine: c.engine.Stats(), Pool: c.pools[0].Stats(), Lent: c.lender.pool.Stats()}
}

// Shutdown ends the subscriptions, takes no more commands, waits until those accepted have settled, or ctx ends
// and the rest is failed, and reports how they ended. A command that blocks on the server is waited for like any
// other. It may be called again and by several goroutines.
func (c *Client) Shutdown(ctx context.Context) (fdengine.Report, error) {
	c.subs.close()
	defer c.lender.hold()()
	r, err := c.shutdown(ctx)
	err = errors.Join(err, c.lender.shutdown(ctx, &r))
	return r, err
}

// Close fails what is unsettled and ends the client, without waiting.
func (c *Client) Close() error {
	c.subs.close()
	c.lender.close()
	if c.lanes != nil {
		return c.lanes.Close()
	}
	return c.engine.Close()
}

// Done is closed when the client has ended and its goroutines and connections are gone.
func (c *Client) Done() <-chan struct{} { return c.done }
