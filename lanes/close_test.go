package lanes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/lanes"
	"github.com/fdengine/fullduplex/panics"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Covers: E-32
func TestClosingOneLaneClosesAllAndFatesAreHonest(t *testing.T) {
	bubble(t, setup{n: 3, closed: 1}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(2)
		r.freeze(true)
		o := &outcomes{}
		for i, key := range keys {
			require.NoError(t, r.Submit(bg, of(key, "t"+itoa(i)), o))
		}
		pass(time.Second)
		require.NoError(t, r.engines[1].Close())
		<-r.Done()
		tokens, errs := o.all()
		require.Len(t, tokens, 3)
		for i, token := range tokens {
			require.ErrorIs(t, errs[i], fdengine.ErrClosed)
			want := carry.MaybeExecuted
			if token == "t2" { // had no connection
				want = carry.NotSent
			}
			require.Equal(t, want, fdengine.FateOf(errs[i]), token)
		}
		for _, key := range keys {
			err := r.Do(bg, of(key, "late"))
			require.ErrorIs(t, err, fdengine.ErrClosed)
			require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		}
		r.freeze(false)
	})
}

// Covers: E-32
func TestCloseEndsAllAtOnceTwiceAndInACompletion(t *testing.T) {
	bubble(t, setup{n: 3}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		r.freeze(true)
		o := &outcomes{}
		for i, key := range r.keysOf() {
			require.NoError(t, r.Submit(bg, of(key, "t"+itoa(i)), o))
		}
		closer := &closing{r: r}
		require.NoError(t, r.Submit(bg, scripted.Echo("last"), closer))
		r.servers[0].FreezeExec(false)
		<-r.Done()
		require.NoError(t, r.Close())
		tokens, errs := o.all()
		require.Len(t, tokens, 3)
		require.Error(t, errors.Join(errs...))
		require.True(t, closer.ran)
		r.freeze(false)
	})
}

type closing struct {
	r   *rig
	ran bool
}

func (c *closing) Complete(fdengine.Command, error) {
	c.ran = true
	_ = c.r.Close()
	_ = c.r.TrySubmit(scripted.Echo("no"), c)
}

func TestCloseIsForAllLanesAtTheSameTime(t *testing.T) {
	bubble(t, setup{n: 4}, func(t *testing.T, r *rig) {
		r.connect(4)
		keys := r.keysOf()
		require.NoError(t, r.Close())
		for _, key := range keys { // nobody had time to notice that another lane ended
			require.ErrorIs(t, r.Do(bg, of(key, "late")), fdengine.ErrClosed)
		}
	})
}

func TestShutdownDrainsALaneThatIsBusyThoughAnotherIsDoneAtOnce(t *testing.T) {
	bubble(t, setup{n: 3, closed: 1}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		o := &outcomes{}
		r.connect(2)
		require.NoError(t, r.Do(bg, of(keys[0], "answered")))
		r.servers[1].FreezeExec(true)
		for i := range 10 {
			require.NoError(t, r.Submit(bg, of(keys[1+i%2], "t"+itoa(i)), o))
		}
		synctest.Wait()
		var wg sync.WaitGroup
		reports := make([]fdengine.Report, 2)
		for i := range reports {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(bg, time.Minute)
				defer cancel()
				var err error
				reports[i], err = r.Shutdown(ctx)
				require.NoError(t, err)
			})
		}
		pass(2 * time.Second)
		require.True(t, closed(r.engines[0].Done()), "nothing is left to do there")
		require.False(t, closed(r.engines[1].Done()))
		require.False(t, closed(r.engines[2].Done()))
		require.False(t, closed(r.Done()))
		for _, key := range keys {
			require.ErrorIs(t, r.Do(bg, of(key, "late")), fdengine.ErrClosed)
		}
		r.servers[1].FreezeExec(false)
		r.listen(2)
		wg.Wait()
		<-r.Done()
		_, errs := o.all()
		require.Len(t, errs, 10)
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, fdengine.Report{Answered: 10}, reports[0])
		require.Equal(t, fdengine.Report{Answered: 10}, reports[1])
	})
}

func TestShutdownThatIsCutShortSettlesAllLanesByTheirFate(t *testing.T) {
	bubble(t, setup{n: 3, closed: 1}, func(t *testing.T, r *rig) {
		r.connect(2)
		r.freeze(true)
		o := &outcomes{}
		for i, key := range r.keysOf() {
			for k := range i + 1 {
				require.NoError(t, r.Submit(bg, of(key, "t"+itoa(i)+itoa(k)), o))
			}
		}
		pass(time.Second)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		report, err := r.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, fdengine.Report{MaybeExecuted: 3, NotSent: 3}, report)
		<-r.Done()
		r.freeze(false)
	})
}

func TestPingAsksEveryLaneAndReadyIsTheFirstConnection(t *testing.T) {
	bubble(t, setup{n: 3, closed: 2, engine: fdengine.Options{MaxOutage: time.Second}}, func(t *testing.T, r *rig) {
		require.False(t, closed(r.Ready()))
		require.NoError(t, r.Do(bg, of(r.keysOf()[0], "x")))
		synctest.Wait()
		require.True(t, closed(r.Ready()))
		require.ErrorIs(t, r.Ping(bg), fdengine.ErrUnavailable)
		r.listen(1)
		require.ErrorIs(t, r.Ping(bg), fdengine.ErrUnavailable)
		r.listen(2)
		require.NoError(t, r.Ping(bg))
		for i := range 3 {
			require.Equal(t, 1, r.servers[i].OpenConns())
		}
	})
}

func TestReadyStaysOpenAndPingFailsWhenThereNeverWasAConnection(t *testing.T) {
	s, err := lanes.New(plain(t), plain(t))
	require.NoError(t, err)
	require.ErrorContains(t, s.Ping(bg), "Ping is not set")
	require.NoError(t, s.Close())
	<-s.Done()
	require.False(t, closed(s.Ready()))
}

func TestAMakerOfPingsThatEndsItsGoroutineIsAnError(t *testing.T) {
	e, err := fdengine.New(fdengine.Options{
		Protocol: scripted.NewProtocol, Leaser: scripted.NewLeaser(nil),
		Ping: func() fdengine.Command { return leaver{of("k", "x")} },
	})
	require.NoError(t, err)
	s, err := lanes.New(e)
	require.NoError(t, err)
	require.ErrorIs(t, s.Ping(bg), panics.ErrGoexit)
	require.NoError(t, s.Close())
	<-s.Done()
}
