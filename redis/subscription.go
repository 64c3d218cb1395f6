package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
)

// SubscribeOptions say what a Subscription listens to at first, and what it does when its receiver is slow.
type SubscribeOptions struct {
	Channels, Patterns, ShardChannels []string

	// Buffer is how many messages wait for the receiver; default 1024.
	Buffer int
	// Block, when the buffer is full, reads nothing more from the server until there is room: the server then
	// buffers, and ends the connection at its own limit, which shows as a Missed. Otherwise messages that do not
	// fit are dropped, and counted in a Missed at their place.
	Block bool
}

const defaultBuffer = 1024

// Subscription receives what is published on channels, over a connection of its own. When that is lost, it is made
// again, all subscriptions are restored, and a Message with Missed says for how long nothing was heard. Its methods
// may be called from any goroutine.
type Subscription struct {
	client *Client
	engine *fdengine.Engine
	pool   *pool.Pool
	box    *inbox
	beats  atomic.Bool // a heartbeat is on its way
	pump   sync.WaitGroup
	once   sync.Once // makes out
	out    chan Message
	done   chan struct{}
	mu     struct {
		sync.Mutex
		want  map[topic]bool // true: the server has confirmed it
		names map[string]string
		heard time.Time // from the server
		lost  time.Time // the connection, with confirmed subscriptions: heard last then; zero = it is there
		cause error     // of the loss
	}
}

// topic is one thing subscribed to.
type topic struct {
	form form
	name string
}

// form is one of the three ways to subscribe.
type form uint8

const (
	channelForm form = iota
	patternForm
	shardForm
)

func (f form) verbs() (subscribe, unsubscribe string) {
	switch f {
	case patternForm:
		return "psubscribe", "punsubscribe"
	case shardForm:
		return "ssubscribe", "sunsubscribe"
	}
	return "subscribe", "unsubscribe"
}

// Subscribe listens to channels; it returns when the server has confirmed all of them. ctx bounds that.
func (c *Client) Subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.SubscribeTo(ctx, SubscribeOptions{Channels: channels})
}

// PSubscribe listens to all channels that match patterns.
func (c *Client) PSubscribe(ctx context.Context, patterns ...string) (*Subscription, error) {
	return c.SubscribeTo(ctx, SubscribeOptions{Patterns: patterns})
}

// SSubscribe listens to sharded channels, which SPUBLISH publishes on.
func (c *Client) SSubscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.SubscribeTo(ctx, SubscribeOptions{ShardChannels: channels})
}

// SubscribeTo is the general form of Subscribe. An error means that there is no subscription.
func (c *Client) SubscribeTo(ctx context.Context, o SubscribeOptions) (*Subscription, error) {
	if o.Buffer < 0 {
		return nil, fmt.Errorf("redis: Buffer is %d, it must be at least 0", o.Buffer)
	}
	if o.Buffer == 0 {
		o.Buffer = defaultBuffer
	}
	s := &Subscription{client: c, box: newInbox(o.Buffer, o.Block), done: make(chan struct{})}
	s.mu.want, s.mu.names = map[topic]bool{}, map[string]string{}
	if err := s.open(); err != nil {
		return nil, err
	}
	err := s.change(ctx, true, channelForm, o.Channels)
	if err == nil {
		err = s.change(ctx, true, patternForm, o.Patterns)
	}
	if err == nil {
		err = s.change(ctx, true, shardForm, o.ShardChannels)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// open starts the engine and enters the subscription in the client's list.
func (s *Subscription) open() error {
	o := s.client.options
	po := o.pool()
	po.OnConnect = s.restore
	p, err := pool.New(po)
	if err != nil {
		return err // not reached: the options were checked by New
	}
	eo := o.engine(p)
	base := eo.Protocol
	eo.Protocol = func() fdengine.Protocol { return pubsubProtocol{base().(*protocol)} }
	eo.Observer, eo.OnPush = s, s.pushed
	eo.IdleRelease, eo.MaxHold = 0, 0
	eo.MaxOutage = -1 // its callers have their ctx
	eo.Rerouter, eo.Limiter = nil, nil
	eo.Ping = func() fdengine.Command { return &heartbeat{s} }
	e, err := fdengine.New(eo)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	s.pool, s.engine = p, e
	if !s.client.subs.enter(s) {
		_ = e.Close()
		<-e.Done()
		_ = p.Close()
		return notSent(fdengine.ErrClosed, nil)
	}
	go s.reap()
	return nil
}

// reap waits for all that belongs to the subscription, and tells Done.
func (s *Subscription) reap() {
	<-s.engine.Done()
	s.box.end(fdengine.ErrClosed)
	s.once.Do(func() { s.out = make(chan Message); close(s.out) })
	s.pump.Wait()
	_ = s.pool.Close()
	<-s.pool.Done()
	s.client.subs.leave(s)
	close(s.done)
}

// Subscribe adds channels and returns when the server has confirmed them. After an error none of those that this
// call added is subscribed to.
func (s *Subscription) Subscribe(ctx context.Context, channels ...string) error {
	return s.change(ctx, true, channelForm, channels)
}

// PSubscribe adds patterns.
func (s *Subscription) PSubscribe(ctx context.Context, patterns ...string) error {
	return s.change(ctx, true, patternForm, patterns)
}

// SSubscribe adds sharded channels.
func (s *Subscription) SSubscribe(ctx context.Context, channels ...string) error {
	return s.change(ctx, true, shardForm, channels)
}

// Unsubscribe removes channels and returns when the server has confirmed it. Messages that are already buffered
// are still received. After an error they will not be restored, but may go on until the connection ends.
func (s *Subscription) Unsubscribe(ctx context.Context, channels ...string) error {
	return s.change(ctx, false, channelForm, channels)
}

// PUnsubscribe removes patterns.
func (s *Subscription) PUnsubscribe(ctx context.Context, patterns ...string) error {
	return s.change(ctx, false, patternForm, patterns)
}

// SUnsubscribe removes sharded channels.
func (s *Subscription) SUnsubscribe(ctx context.Context, channels ...string) error {
	return s.change(ctx, false, shardForm, channels)
}

// Receive returns the next message, or a Missed, waiting for it until ctx ends. After the end of the subscription
// it returns what is left in the buffer and then the reason: fdengine.ErrClosed after a Close, or the error for
// which no new connection can be had, such as a wrong password.
func (s *Subscription) Receive(ctx context.Context) (Message, error) { return s.box.receive(ctx) }

// Channel gives what Receive gives, for range and select. It is closed after the end of the subscription; Err
// says why. The buffer and its policy are those of the subscription.
func (s *Subscription) Channel() <-chan Message {
	s.once.Do(func() {
		s.out = make(chan Message)
		s.pump.Add(1)
		go func() {
			defer s.pump.Done()
			defer close(s.out)
			for {
				m, err := s.box.receive(context.Background())
				if err != nil {
					return
				}
				select {
				case s.out <- m:
				case <-s.engine.Done(): // nobody needs to drain it
					return
				}
			}
		}()
	})
	return s.out
}

// Err is why the subscription has ended; nil while it has not.
func (s *Subscription) Err() error {
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	return s.box.mu.err
}

// Close ends the subscription and its connection, without waiting.
func (s *Subscription) Close() error {
	s.box.end(fdengine.ErrClosed)
	return s.engine.Close()
}

// Done is closed when the subscription has ended and its goroutines and connection are gone.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Ping asks the server for an answer on the subscription's connection.
func (s *Subscription) Ping(ctx context.Context) error { return s.engine.Ping(ctx) }
