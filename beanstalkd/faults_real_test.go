package beanstalkd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// outcomes counts what became of puts, by body.
type outcomes struct {
	mu struct {
		sync.Mutex
		acked, maybe, notSent []string
	}
}

func (o *outcomes) note(body string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.mu.acked = append(o.mu.acked, body)
	case fdengine.FateOf(err) == carry.NotSent:
		o.mu.notSent = append(o.mu.notSent, body)
	default:
		o.mu.maybe = append(o.mu.maybe, body)
	}
}

// check compares with what is in the tube: each acknowledged job once, each that may have been stored at most once,
// none of the others.
func (o *outcomes) check(t *testing.T, present map[string]int) {
	t.Helper()
	for body, n := range present {
		require.Equal(t, 1, n, "job %s is there twice", body)
	}
	for _, body := range o.mu.acked {
		require.Equal(t, 1, present[body], "acknowledged job %s", body)
	}
	for _, body := range o.mu.notSent {
		require.Zero(t, present[body], "job %s, said not to be sent", body)
	}
	require.LessOrEqual(t, len(o.mu.acked), len(present))
	require.LessOrEqual(t, len(present), len(o.mu.acked)+len(o.mu.maybe))
}

// Acknowledged <= present <= acknowledged + maybe, over ten deaths of a server that keeps a binlog.
func TestNothingIsLostOrDoubledWhenTheServerIsKilledUnderLoad(t *testing.T) {
	srv := testserver.StartBeanstalkd(t, "-b", ".")
	c := realClient(t, srv.Addr(), nil)
	var o outcomes
	deaths := 0
	for round := range 10 {
		stop := make(chan struct{})
		enough := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					p := &Put{Body: fmt.Appendf(nil, "%d-%d-%d", round, g, i)}
					_, err := c.Put(bg, p)
					o.note(string(p.Body), err)
					if i == 50+round*20 {
						once.Do(func() { close(enough) })
					}
				}
			})
		}
		<-enough
		srv.Kill9() // puts are in flight
		deaths++
		srv.Restart()
		close(stop)
		wg.Wait()
	}
	_, err := c.Put(bg, &Put{Body: []byte("last")})
	require.NoError(t, err)
	o.note("last", nil)
	require.NotEmpty(t, o.mu.acked)
	t.Logf("%d deaths: %d acknowledged, %d maybe, %d not sent", deaths, len(o.mu.acked), len(o.mu.maybe), len(o.mu.notSent))
	o.check(t, newWitness(t, srv.Addr()).drain("default"))
	even(t, c.Usage())
}

// A server that hangs has received everything and will carry it out when it comes to.
// Covers: E-21
func TestBehindAServerThatHangsNoPutIsStoredTwice(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), func(o *Options) { o.Engine.ReadTimeout, o.DialTimeout = 200*time.Millisecond, 200*time.Millisecond })
	_, err := c.Put(bg, &Put{Body: []byte("first")})
	require.NoError(t, err)
	srv.Stop()
	var o outcomes
	o.note("first", nil)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			p := &Put{Body: fmt.Appendf(nil, "%d", i), Timeout: time.Second}
			_, err := c.Put(bg, p)
			o.note(string(p.Body), err)
		})
	}
	wg.Wait()
	require.NotEmpty(t, o.mu.maybe)
	srv.Cont()
	_, err = c.Put(bg, &Put{Body: []byte("last")})
	require.NoError(t, err)
	o.note("last", nil)
	w := newWitness(t, srv.Addr())
	o.check(t, w.drain("default"))
}

// Covers: E-27
func TestAnIdleConnectionThatTheServerClosedIsSeenAtOnceAndTheNextPutSucceeds(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	ended := make(ends, 10)
	c := realClient(t, srv.Addr(), func(o *Options) { o.Engine.Observer = ended })
	_, err := c.Put(bg, &Put{Body: []byte("a")})
	require.NoError(t, err)
	srv.Kill9()
	ev := <-ended
	require.Equal(t, "cut", ev.Reason)
	srv.Restart()
	p := &Put{Body: []byte("b")}
	_, err = c.Put(bg, p)
	require.NoError(t, err)
	require.Equal(t, 1, p.Sends)
	require.Equal(t, map[string]int{"b": 1}, newWitness(t, srv.Addr()).drain("default"))
}

// A reserve that its caller has given up stays armed on the server, and swallows the next job (C23).
func TestAJobIsNotHandedToAReserveThatWasGivenUp(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	producer := realClient(t, srv.Addr(), nil)
	first, second := realConsumer(t, srv.Addr(), nil), realConsumer(t, srv.Addr(), nil)
	rng := rand.New(rand.NewPCG(3, 4))
	got := map[string]int{}
	firsts := 0
	for round := range 200 {
		body := fmt.Sprint(round)
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		put := make(chan error, 1)
		time.AfterFunc(4*time.Millisecond+time.Duration(rng.Int64N(int64(8*time.Millisecond))), func() {
			_, err := producer.Put(bg, &Put{Body: []byte(body)})
			put <- err
		})
		j, err := first.Reserve(ctx)
		cancel()
		if err == nil {
			firsts++
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			j, err = second.ReserveWithTimeout(bg, 20*time.Second)
			require.NoError(t, err, "round %d: the job is with nobody", round)
		}
		got[string(j.Body)]++
		require.NoError(t, j.Delete(bg))
		require.NoError(t, <-put)
	}
	require.Len(t, got, 200)
	t.Logf("%d of 200 went to the first", firsts)
	require.Empty(t, newWitness(t, srv.Addr()).drain("default"))
}

// Cancelled for certain before the put: the other one gets the job at once.
func TestAfterACancelledReserveTheNextJobGoesToAnother(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	first, second := realConsumer(t, srv.Addr(), nil), realConsumer(t, srv.Addr(), nil)
	w := newWitness(t, srv.Addr())
	ctx, cancel := context.WithCancel(bg)
	gave := make(chan error, 1)
	go func() {
		_, err := first.Reserve(ctx)
		gave <- err
	}()
	for w.stat("stats", "current-waiting") != 1 {
	}
	cancel()
	require.ErrorIs(t, <-gave, context.Canceled)
	id, err := c.Put(bg, &Put{Body: []byte("x")})
	require.NoError(t, err)
	j, err := second.Reserve(bg)
	require.NoError(t, err)
	require.Equal(t, id, j.ID)
	require.NoError(t, j.Delete(bg))
}

// A reserve that waits must not keep the puts of others waiting (C33).
func TestPutsGoOnWhileAConsumerWaits(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	worker := realConsumer(t, srv.Addr(), nil, "rare")
	rare := realClient(t, srv.Addr(), func(o *Options) { o.Tube = "rare" })
	w := newWitness(t, srv.Addr())
	got := make(chan error, 1)
	go func() {
		j, err := worker.Reserve(bg)
		if err == nil && string(j.Body) != "at last" {
			err = errors.New("another job")
		}
		got <- err
	}()
	for w.stat("stats", "current-waiting") != 1 {
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				_, err := c.Put(bg, &Put{Body: []byte("x")})
				require.NoError(t, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, w.stat("stats", "current-waiting"))
	_, err := rare.Put(bg, &Put{Body: []byte("at last")})
	require.NoError(t, err)
	require.NoError(t, <-got)
}

func TestAWorkerThatCrashesAndComesBackLosesNothing(t *testing.T) {
	srv := testserver.StartBeanstalkd(t, "-b", ".")
	c := realClient(t, srv.Addr(), nil)
	const jobs = 60
	for i := range jobs {
		_, err := c.Put(bg, &Put{Body: fmt.Appendf(nil, "%d", i)})
		require.NoError(t, err)
	}
	done := map[string]int{}
	for life := 0; len(done) < jobs; life++ {
		worker, err := NewConsumer(Options{Addr: srv.Addr()})
		require.NoError(t, err)
		wait := 20 * time.Second // for what the last life had reserved
		var held []*Job
		for range 15 {
			j, err := worker.ReserveWithTimeout(bg, wait)
			if wait = 0; errors.Is(err, ErrTimedOut) {
				break
			}
			require.NoError(t, err)
			if held = append(held, j); len(held)%2 == 1 {
				require.NoError(t, j.Delete(bg))
				done[string(j.Body)]++
			}
		}
		require.NotEmpty(t, held, "%d of %d jobs are done, and no other is there", len(done), jobs)
		if life%2 == 1 {
			srv.Kill9()
			<-held[0].Lost()
			srv.Restart()
			err := held[len(held)-1].Delete(bg)
			require.ErrorIs(t, err, ErrReservationLost)
			require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		}
		end(t, worker) // with jobs reserved
	}
	for body, n := range done {
		require.Equal(t, 1, n, body)
	}
	require.Empty(t, newWitness(t, srv.Addr()).drain("default"))
}

// The reservation goes with the connection: what was not deleted comes again, and a delete that comes too late says
// so instead of deleting somebody else's.
func TestALateDeleteDoesNotDeleteSomebodyElsesJob(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	id, err := c.Put(bg, &Put{Body: []byte("x"), TTR: time.Minute})
	require.NoError(t, err)
	first, second := realConsumer(t, srv.Addr(), nil), realConsumer(t, srv.Addr(), nil)
	old, err := first.Reserve(bg)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
	defer cancel()
	_, err = first.Reserve(ctx) // gives up, and with it the connection
	require.ErrorIs(t, err, context.DeadlineExceeded)
	mine, err := second.Reserve(bg)
	require.NoError(t, err)
	require.Equal(t, id, mine.ID)
	require.ErrorIs(t, old.Delete(bg), ErrReservationLost)
	require.ErrorIs(t, old.Release(bg, 0, 0), ErrReservationLost)
	require.NoError(t, mine.Touch(bg))
	require.NoError(t, mine.Delete(bg))
}

func TestAJobAboutToBeTakenBackIsToldAndThenLost(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	_, err := c.Put(bg, &Put{Body: []byte("x"), TTR: time.Second})
	require.NoError(t, err)
	first, second := realConsumer(t, srv.Addr(), nil), realConsumer(t, srv.Addr(), nil)
	j, err := first.Reserve(bg)
	require.NoError(t, err)
	_, err = first.Reserve(bg)
	require.ErrorIs(t, err, ErrDeadlineSoon)
	mine, err := second.Reserve(bg) // when its time to run is over
	require.NoError(t, err)
	require.Equal(t, j.ID, mine.ID)
	err = j.Delete(bg)
	require.ErrorIs(t, err, ErrReservationLost)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, mine.Delete(bg))
}
