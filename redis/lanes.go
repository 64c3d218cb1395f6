package redis

import (
	"context"
	"errors"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/lanes"
	"github.com/fdengine/fullduplex/pool"
)

var (
	_ lanes.Keyed = (*Cmd)(nil)
	_ lanes.Keyed = (*Tx)(nil)
	_ lanes.Keyed = RefusedWhole{}
)

// open makes the pools and engines of the shared connections. Each lane has a pool of its own, so that what fences a
// dead connection is the next handshake of the same lane. On an error nothing is left.
func (c *Client) open() (err error) {
	var engines []*fdengine.Engine
	for range max(c.options.Lanes, 1) {
		var p *pool.Pool
		if p, err = pool.New(c.options.pool()); err != nil {
			break
		}
		c.pools = append(c.pools, p)
		var e *fdengine.Engine
		if e, err = fdengine.New(c.options.engine(p)); err != nil {
			break
		}
		engines = append(engines, e)
	}
	if err == nil && len(engines) > 1 {
		c.lanes, err = lanes.New(engines...)
	}
	if err != nil { // not reached: the same options were checked by New
		for _, e := range engines {
			_ = e.Close()
		}
		for _, p := range c.pools {
			err = errors.Join(err, p.Close())
		}
		return err
	}
	c.engine = engines[0]
	return nil
}

// Engines returns the engines of the shared connections: one, or as many as Options.Lanes says. Closing one closes
// the client.
func (c *Client) Engines() []*fdengine.Engine {
	if c.lanes != nil {
		return c.lanes.Engines()
	}
	return []*fdengine.Engine{c.engine}
}

// StreamFor is Stream, in order with the commands of key that are submitted outside it. Without Options.Lanes every
// Stream is.
func (c *Client) StreamFor(key string) *fdengine.Stream {
	if c.lanes != nil {
		return c.lanes.StreamFor([]byte(key))
	}
	return c.engine.Stream()
}

// ended is closed when the engines of the shared connections are gone.
func (c *Client) ended() <-chan struct{} {
	if c.lanes != nil {
		return c.lanes.Done()
	}
	return c.engine.Done()
}

func (c *Client) shutdown(ctx context.Context) (fdengine.Report, error) {
	if c.lanes != nil {
		return c.lanes.Shutdown(ctx)
	}
	return c.engine.Shutdown(ctx)
}

// poolStats is what the pools of the shared connections say together.
func (c *Client) poolStats() pool.Stats {
	all := make([]pool.Stats, len(c.pools))
	for i, p := range c.pools {
		all[i] = p.Stats()
	}
	return sumPools(all)
}

// sumPools adds snapshots up; FailedRounds is the largest.
func sumPools(all []pool.Stats) pool.Stats {
	sum := pool.Stats{DialFailures: map[pool.Phase]uint64{}, Removed: map[pool.Reason]uint64{}}
	for _, s := range all {
		sum.Open += s.Open
		sum.Dialing += s.Dialing
		sum.Idle += s.Idle
		sum.Leased += s.Leased
		sum.Waiting += s.Waiting
		sum.Fences += s.Fences
		sum.Dials += s.Dials
		sum.DialsCanceled += s.DialsCanceled
		sum.Reuses += s.Reuses
		sum.Handoffs += s.Handoffs
		sum.Ignored += s.Ignored
		sum.FailedRounds = max(sum.FailedRounds, s.FailedRounds)
		for phase, n := range s.DialFailures {
			sum.DialFailures[phase] += n
		}
		for reason, n := range s.Removed {
			sum.Removed[reason] += n
		}
	}
	return sum
}
