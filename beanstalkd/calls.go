package beanstalkd

import (
	"bytes"
	"context"
	"time"
)

// The methods here are Do with one command each; its doc comment holds. For many jobs use Submit, DoBatch or a
// Stream.

// Put stores p and returns its id, which is in p too, with the warning that it is buried.
func (c *Client) Put(ctx context.Context, p *Put) (id uint64, err error) {
	if err := c.Do(ctx, p); err != nil {
		return 0, err
	}
	return p.ID, nil
}

// PutIn is Put into the given tube.
func (c *Client) PutIn(ctx context.Context, tube string, p *Put) (id uint64, err error) {
	p.Tube = tube
	return c.Put(ctx, p)
}

// Peeked is a job that was looked at, and not reserved.
type Peeked struct {
	ID   uint64
	Body []byte
}

// Peek shows a job. ErrNotFound when there is none, as for the next three.
func (c *Client) Peek(ctx context.Context, id uint64) (Peeked, error) { return c.peek(ctx, Peek(id)) }

// PeekReady shows the next ready job of a tube, empty for the client's.
func (c *Client) PeekReady(ctx context.Context, tube string) (Peeked, error) {
	return c.peek(ctx, PeekReady(tube))
}

// PeekDelayed shows the delayed job of a tube that becomes ready first.
func (c *Client) PeekDelayed(ctx context.Context, tube string) (Peeked, error) {
	return c.peek(ctx, PeekDelayed(tube))
}

// PeekBuried shows the next buried job of a tube.
func (c *Client) PeekBuried(ctx context.Context, tube string) (Peeked, error) {
	return c.peek(ctx, PeekBuried(tube))
}

func (c *Client) peek(ctx context.Context, cmd *Cmd) (Peeked, error) {
	if err := c.Do(ctx, cmd); err != nil {
		return Peeked{}, err
	}
	id, body, err := cmd.Job()
	return Peeked{id, bytes.Clone(body)}, err
}

// Kick makes at most bound jobs of a tube ready, and says how many it were.
func (c *Client) Kick(ctx context.Context, tube string, bound int) (int, error) {
	cmd := Kick(tube, bound)
	if err := c.Do(ctx, cmd); err != nil {
		return 0, err
	}
	return cmd.Count()
}

// KickJob makes a buried or delayed job ready.
func (c *Client) KickJob(ctx context.Context, id uint64) error { return c.Do(ctx, KickJob(id)) }

// PauseTube lets no job of a tube be reserved for d, in whole seconds, rounded up.
func (c *Client) PauseTube(ctx context.Context, tube string, d time.Duration) error {
	return c.Do(ctx, PauseTube(tube, d))
}

// Stats are the statistics of the server.
func (c *Client) Stats(ctx context.Context) (Stats, error) { return c.stats(ctx, ServerStats()) }

// StatsJob are the statistics of a job.
func (c *Client) StatsJob(ctx context.Context, id uint64) (Stats, error) {
	return c.stats(ctx, StatsJob(id))
}

// StatsTube are the statistics of a tube. ErrNotFound when nobody uses or watches it and it has no job.
func (c *Client) StatsTube(ctx context.Context, tube string) (Stats, error) {
	return c.stats(ctx, StatsTube(tube))
}

func (c *Client) stats(ctx context.Context, cmd *Cmd) (Stats, error) {
	if err := c.Do(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Stats()
}

// ListTubes are the tubes that there are.
func (c *Client) ListTubes(ctx context.Context) ([]string, error) {
	cmd := ListTubes()
	if err := c.Do(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.List()
}
