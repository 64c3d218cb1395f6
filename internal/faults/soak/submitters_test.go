package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/redis"
)

// The submitters here have many commands under way and are told of each by a completion.

// outcome is the completion of one command.
type outcome func(err error)

func (o outcome) Complete(_ fdengine.Command, err error) { o(err) }

// submit submits; a rejection is told to done as well.
func submit(to fdengine.Submitter, cmd fdengine.Command, done outcome) {
	if err := to.Submit(context.Background(), cmd, done); err != nil {
		done(err)
	}
}

// flow submits bursts to a Stream and begins anew when it is broken. A series that allows repetition goes to a list,
// which shows the order of all runs; the other kind to a stream of the server, which answers with ids.
func (l *load) flow(s *series, rng *rand.Rand) {
	st := l.redis.Stream()
	defer func() { _ = st.Close() }()
	for l.running() {
		var wg sync.WaitGroup
		for range 1 + rng.IntN(60) {
			i, token := s.take()
			cmd := redis.RPush(s.name, token).WithClass(carry.Replay).WithBudget(s.most - 1)
			if s.most == 1 {
				cmd = redis.XAdd(s.name, "*", "t", token)
			}
			wg.Add(1)
			submit(st, cmd, func(err error) {
				defer wg.Done()
				if s.most == 1 {
					l.added(s, i, cmd, err)
				} else if s.note(i, "", err) == answered {
					l.done[redisSite].Add(1)
				}
			})
		}
		wg.Wait()
		if st.Flush(context.Background()) != nil {
			l.renew(st, s, s.taken())
		}
	}
}

// taken is how many tokens there are.
func (s *series) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.told)
}

// pour submits without waiting, up to a number under way.
func (l *load) pour(s *series, rng *rand.Rand) {
	room := make(chan struct{}, 64+rng.IntN(192))
	for l.running() {
		room <- struct{}{}
		i, token := s.take()
		cmd := redis.XAdd(s.name, "*", "t", token)
		submit(l.redis, cmd, func(err error) {
			l.added(s, i, cmd, err)
			<-room
		})
	}
	for range cap(room) {
		room <- struct{}{}
	}
}

// pourJobs is pour for jobs.
func (l *load) pourJobs(s *series, rng *rand.Rand) {
	room := make(chan struct{}, 16+rng.IntN(48))
	for l.running() {
		room <- struct{}{}
		i, token := s.take()
		p := &beanstalkd.Put{Body: []byte(token), TTR: time.Hour}
		submit(l.tube, p, func(err error) {
			l.stored(s, i, p, err)
			<-room
		})
	}
	for range cap(room) {
		room <- struct{}{}
	}
}

// chain submits each command from the completion of the one before, without ever blocking, and rests for a moment
// after a failure.
func (l *load) chain(s *series) {
	var next func(tell chan<- error)
	next = func(tell chan<- error) {
		i, token := s.take()
		cmd := redis.XAdd(s.name, "*", "t", token)
		err := l.redis.TrySubmit(cmd, outcome(func(err error) {
			if l.added(s, i, cmd, err); err != nil || !l.running() {
				tell <- err
				return
			}
			next(tell)
		}))
		if err != nil {
			l.added(s, i, cmd, err)
			tell <- err
		}
	}
	for l.running() {
		tell := make(chan error, 1)
		next(tell)
		if err := <-tell; errors.Is(err, fdengine.ErrQueueFull) {
			l.rest(time.Millisecond)
		}
	}
}
