package beanstalkd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// consumer makes a Consumer of the fake server.
func (s *fake) consumer(t *testing.T, change func(o *Options), tubes ...string) *Consumer {
	o := s.options()
	if change != nil {
		change(&o)
	}
	c, err := NewConsumer(o, tubes...)
	require.NoError(t, err)
	return c
}

// all is everything that connection n sent.
func (s *fake) all(n int) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.mu.log {
		if r.conn == n {
			out = append(out, r.line)
		}
	}
	return out
}

// ever is all that was sent on any connection and begins with verb.
func (s *fake) ever(verb string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.mu.log {
		if strings.HasPrefix(r.line, verb) {
			n++
		}
	}
	return n
}

// oneJob answers every reserve with job 7.
func oneJob(r request) string {
	if strings.HasPrefix(r.line, "reserve") {
		return "RESERVED 7 3\r\nabc\r\n"
	}
	return normal
}

func TestAJobIsWorkedOnOverTheConnectionThatReservedIt(t *testing.T) {
	bubble(t, func(r request) string {
		switch r.line {
		case "release 7 9 2":
			return "RELEASED\r\n"
		case "bury 7 3":
			return "BURIED\r\n"
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		for range 2 {
			j, err := c.Reserve(bg)
			require.NoError(t, err)
			require.Equal(t, "abc", string(j.Body))
			require.EqualValues(t, 7, j.ID)
			require.NoError(t, j.Touch(bg))
			require.NoError(t, j.Release(bg, 9, 1500*time.Millisecond))
			require.NoError(t, j.Bury(bg, 3))
			require.NoError(t, j.Delete(bg))
		}
		_, err := c.ReserveWithTimeout(bg, 1100*time.Millisecond)
		require.NoError(t, err)
		j, err := c.ReserveJob(bg, 7)
		require.NoError(t, err)
		round := []string{"reserve", "touch 7", "release 7 9 2", "bury 7 3", "delete 7"}
		require.Equal(t, append(append(round, round...), "reserve-with-timeout 2", "reserve-job 7"), s.lines(0))
		require.Equal(t, 1, s.conns())
		select {
		case <-j.Lost():
			t.Fatal("lost too early")
		default:
		}
		require.NoError(t, c.Close())
		<-j.Lost()
		require.ErrorIs(t, j.Delete(bg), ErrReservationLost)
		_, err = c.Reserve(bg)
		require.ErrorIs(t, err, fdengine.ErrClosed)
		<-c.Done()
		even(t, c.Usage())
	})
}

func TestWhatIsNoJobIsAnErrorOfItsOwn(t *testing.T) {
	next := ""
	bubble(t, func(r request) string {
		if r.line == "use default" || r.line == "list-tube-used" || strings.HasPrefix(r.line, "watch") || next == "" {
			return oneJob(r)
		}
		return next
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)
		for reply, want := range map[string]error{"TIMED_OUT": ErrTimedOut, "DEADLINE_SOON": ErrDeadlineSoon} {
			next = reply + "\r\n"
			_, err := c.ReserveWithTimeout(bg, 0)
			require.ErrorIs(t, err, want)
			require.Equal(t, carry.Answered, fdengine.FateOf(err))
		}
		next = "NOT_FOUND\r\n"
		_, err = c.ReserveJob(bg, 1)
		require.ErrorIs(t, err, ErrNotFound)
		next = "NOT_IGNORED\r\n"
		_, err = c.Ignore(bg, "default")
		require.ErrorIs(t, err, ErrNotIgnored)
		require.Equal(t, []string{"default"}, c.Watched())
		next = "BURIED\r\n"
		require.ErrorIs(t, j.Release(bg, 1, 0), ErrBuried)
		// Its time to run was over.
		next = "NOT_FOUND\r\n"
		err = j.Delete(bg)
		require.ErrorIs(t, err, ErrReservationLost)
		require.ErrorIs(t, err, ErrNotFound)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		require.Error(t, j.Release(bg, 1, -1))
		_, err = c.ReserveWithTimeout(bg, -1)
		require.Error(t, err)
		_, err = c.Watch(bg, "a b")
		require.Error(t, err)
		require.Equal(t, 1, s.conns())
	})
}

func TestTheTubesWatchedAreWatchedOnTheNextConnection(t *testing.T) {
	bubble(t, func(r request) string {
		if r.line == "reserve" && r.conn < 2 {
			return drop
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, func(o *Options) { o.Tube = "mine" })
		defer end(t, c)
		n, err := c.Watch(bg, "a")
		require.NoError(t, err)
		require.Equal(t, 2, n)
		n, err = c.Ignore(bg, "default")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = c.Watch(bg, "b")
		require.NoError(t, err)
		_, err = c.Reserve(bg)
		require.NoError(t, err, "went on over two lost connections")
		require.Equal(t, []string{"use mine", "watch default", "list-tube-used", "watch a", "ignore default", "watch b", "reserve"}, s.all(0))
		for n := 1; n <= 2; n++ {
			require.Equal(t, []string{"use mine", "watch a", "watch b", "ignore default", "list-tube-used", "reserve"}, s.all(n))
		}
		require.Equal(t, []string{"a", "b"}, c.Watched())
	})
}

func TestAJobOfALostConnectionIsLostAndNoCommandForItGoesElsewhere(t *testing.T) {
	bubble(t, func(r request) string {
		if r.line == "touch 7" {
			return drop
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)
		err = j.Touch(bg)
		require.ErrorIs(t, err, ErrReservationLost, "it was under way")
		require.ErrorIs(t, err, fdengine.ErrMaybeExecuted)
		<-j.Lost()
		err = j.Delete(bg)
		require.ErrorIs(t, err, ErrReservationLost)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.Equal(t, 1, s.conns(), "not even dialed")
		require.Zero(t, c.Usage().Engine.LeaseErrors, "nor asked for")
		again, err := c.Reserve(bg)
		require.NoError(t, err)
		require.ErrorIs(t, j.Delete(bg), ErrReservationLost, "although the id is reserved again")
		require.NoError(t, again.Delete(bg))
		require.Equal(t, 1, s.ever("delete"))
		require.Equal(t, 1, s.ever("touch"))
	})
}

// The worst moment: the command for the job is queued while the connection is already dead.
func TestACommandThatWasQueuedWhenItsConnectionDiedIsLostAtOnceWithoutADial(t *testing.T) {
	bubble(t, oneJob, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)
		require.NoError(t, c.link.begin(j.epoch, 0)) // as Job.Delete does
		c.link.mu.Lock()
		conn := c.link.mu.conn
		c.link.mu.Unlock()
		require.NoError(t, conn.Abort())
		del := Delete(7)
		del.lent = true
		start := time.Now()
		err = c.engine.Do(bg, del)
		c.link.end()
		require.ErrorIs(t, err, errLost)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.Less(t, time.Since(start), 100*time.Millisecond, "a backoff after the cut, and no more")
		require.Zero(t, s.ever("delete"))
		require.Equal(t, 1, s.conns())
	})
}

func TestAReplyIsWaitedForAsLongAsTheCommandItselfTakesAndReadTimeout(t *testing.T) {
	bubble(t, func(r request) string {
		if r.conn == 0 && (strings.HasPrefix(r.line, "reserve") || r.line == "delete 7") {
			return mute
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, func(o *Options) { o.Engine.ReadTimeout = 3 * time.Second })
		defer end(t, c)
		start := time.Now()
		j, err := c.ReserveWithTimeout(bg, 20*time.Second)
		require.NoError(t, err, "on the next connection")
		require.Equal(t, 2, s.conns())
		took := time.Since(start)
		require.GreaterOrEqual(t, took, 23*time.Second)
		require.Less(t, took, 24*time.Second)
		require.NoError(t, j.Delete(bg))
	})
	bubble(t, func(r request) string {
		if r.line == "delete 7" {
			return mute
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)
		start := time.Now()
		err = j.Delete(bg)
		require.ErrorIs(t, err, ErrReservationLost)
		require.ErrorIs(t, err, fdengine.ErrMaybeExecuted)
		require.ErrorIs(t, err, errLate)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, 1, s.ever("delete"))
	})
}

func TestAReserveWithoutATimeIsWaitedForForEverAndTheDialDoesNotCount(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		answer := make(chan struct{})
		s.script = func(r request) string {
			if r.line == "reserve" {
				<-answer
			}
			return oneJob(r)
		}
		c := s.consumer(t, nil)
		defer end(t, c)
		go func() {
			time.Sleep(10 * time.Minute)
			close(answer)
		}()
		start := time.Now()
		_, err := c.Reserve(bg)
		require.NoError(t, err)
		require.Equal(t, 10*time.Minute, time.Since(start))
		require.Equal(t, 1, s.conns())
	})
	bubble(t, func(r request) string {
		if r.line == "use default" && r.conn == 0 {
			return mute // the dial hangs until its own timeout
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, func(o *Options) { o.Engine.ReadTimeout = time.Second })
		defer end(t, c)
		_, err := c.ReserveJob(bg, 7)
		require.NoError(t, err)
		require.Equal(t, 2, s.conns())
	})
}

func TestACallerWhoLeavesAReserveCutsTheConnectionAndLosesWhatIsReservedThere(t *testing.T) {
	bubble(t, func(r request) string {
		if r.line == "reserve-with-timeout 60" {
			return mute
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(bg)
		cancel()
		_, err = c.Reserve(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.NoError(t, j.Touch(bg), "nothing was sent, so nothing was cut")

		ctx, cancel = context.WithTimeout(bg, time.Second)
		defer cancel()
		_, err = c.ReserveWithTimeout(ctx, time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		<-j.Lost()
		synctest.Wait()
		require.Zero(t, s.net.Open(), "the server sees it too")
		require.ErrorIs(t, j.Delete(bg), ErrReservationLost)
		_, err = c.Reserve(bg)
		require.NoError(t, err)
		require.Equal(t, 2, s.conns())
	})
}

func TestCommandsOfAConsumerTakeTurns(t *testing.T) {
	bubble(t, func(r request) string {
		if r.line == "reserve-with-timeout 60" {
			return mute
		}
		return oneJob(r)
	}, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.ReserveWithTimeout(ctx, time.Minute)
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		short, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		err = j.Touch(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.Zero(t, s.ever("touch"))
		cancel()
		wg.Wait()
	})
}

func TestAConsumerTakesWhatAClientTakesAndADeleteAndHasMethodsForTheRest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		require.NoError(t, c.Do(bg, Kick("", 3)))
		require.NoError(t, c.Do(bg, Delete(5)))
		require.ErrorIs(t, c.Do(bg, Peek(5)), ErrNotFound)
		require.ErrorIs(t, c.Do(bg, PeekReady("other")), ErrOtherTube)
		for _, cmd := range []*Cmd{Reserve(), ReserveWithTimeout(0), ReserveJob(1), Release(1, 0, 0), Bury(1, 0), Touch(1), Watch("a"), Ignore("a")} {
			require.ErrorIs(t, c.Do(bg, cmd), ErrNotShared)
		}
		require.Equal(t, []string{"kick 3", "delete 5", "peek 5"}, s.lines(0))
	})
}

func TestAnIdleConsumerLearnsAtOnceThatItsConnectionDied(t *testing.T) {
	bubble(t, oneJob, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)
		c.link.mu.Lock()
		conn := c.link.mu.conn
		c.link.mu.Unlock()
		require.NoError(t, conn.Abort())
		start := time.Now()
		<-j.Lost()
		require.Less(t, time.Since(start), 10*time.Millisecond)
	})
}

// A connection that ends cleanly still holds reservations: nobody else may get it.
func TestAConnectionThatIsGivenBackIsClosed(t *testing.T) {
	bubble(t, oneJob, func(t *testing.T, s *fake) {
		c := s.consumer(t, nil)
		defer end(t, c)
		j, err := c.Reserve(bg)
		require.NoError(t, err)
		c.link.mu.Lock()
		c.link.mu.conn.MarkHandoff()
		c.link.mu.Unlock()
		<-j.Lost()
		synctest.Wait()
		require.Zero(t, s.net.Open())
		_, err = c.Reserve(bg)
		require.NoError(t, err)
		require.Equal(t, 2, s.conns())
	})
}

// Connections die at random moments while several goroutines work. The server hands the same few ids out on every
// connection, so that a command for a job that went to another connection than its own would be taken for one for the
// job there: the witness of that is the number of commands per reservation.
func TestNoCommandForAJobEverReachesAnotherConnection(t *testing.T) {
	for seed := range uint64(20) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 1))
		reservedOn := map[string]int{}
		var wrong []string
		next := 0
		bubble(t, func(r request) string {
			mu.Lock()
			defer mu.Unlock()
			verb, id, _ := strings.Cut(r.line, " ")
			switch {
			case verb == "use" || verb == "watch" || verb == "list-tube-used":
				return normal
			case (verb == "delete" || verb == "touch") && reservedOn[id] != r.conn:
				wrong = append(wrong, fmt.Sprintf("%s on %d, reserved on %d", r.line, r.conn, reservedOn[id]))
			case rng.IntN(4) == 0:
				return []string{drop, doDrop}[rng.IntN(2)]
			case verb == "reserve":
				next++
				reservedOn[fmt.Sprint(next)] = r.conn
				return fmt.Sprintf("RESERVED %d 1\r\nx\r\n", next)
			}
			return normal
		}, func(t *testing.T, s *fake) {
			c := s.consumer(t, nil)
			defer end(t, c)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 50 {
						j, err := c.Reserve(bg)
						require.NoError(t, err)
						for _, f := range []func(context.Context) error{j.Touch, j.Delete} {
							if err := f(bg); err != nil {
								require.ErrorIs(t, err, ErrReservationLost)
								var ce *fdengine.CallError
								require.True(t, fdengine.FateOf(err) == carry.NotSent || errors.As(err, &ce))
							}
						}
					}
				})
			}
			wg.Wait()
			even(t, c.Usage())
		})
		require.Empty(t, wrong)
		require.NotZero(t, next)
	}
}
