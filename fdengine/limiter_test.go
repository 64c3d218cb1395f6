package fdengine_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// limiter counts, and denies on demand.
type limiter struct {
	onAllow, onReport func()
	mu                struct {
		sync.Mutex
		denial                  error
		allowed, denied, failed int
		fine                    int
	}
}

func (l *limiter) deny(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.denial = err
}

func (l *limiter) Allow() error {
	if l.onAllow != nil {
		l.onAllow()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.denial != nil {
		l.mu.denied++
		return l.mu.denial
	}
	l.mu.allowed++
	return nil
}

func (l *limiter) ReportResult(err error) {
	l.mu.Lock()
	if err != nil {
		l.mu.failed++
	} else {
		l.mu.fine++
	}
	l.mu.Unlock()
	if l.onReport != nil {
		l.onReport()
	}
}

func (l *limiter) counts() (allowed, denied, fine, failed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.allowed, l.mu.denied, l.mu.fine, l.mu.failed
}

// Covers: E-17
func TestTheLimiterGetsOneReportPerAllowedClaim(t *testing.T) {
	lim := &limiter{}
	s := script{
		"e": always(scripted.Refuse("ERR no such thing")),
		"d": first(1, scripted.DropAfter()),
	}
	bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Limiter: lim, Window: 4}}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		cs := echoes("c", 20, carry.NoRetry)
		submitAll(t, r, o, cs...)
		pass(time.Second)
		ok(t, o, cs...)
		var server *scripted.ServerError
		require.ErrorAs(t, r.Do(bg, scripted.Echo("e")), &server)
		pass(time.Second)
		allowed, denied, fine, bad := lim.counts()
		require.GreaterOrEqual(t, allowed, 6, "at most 4 a claim")
		require.Zero(t, denied)
		require.Equal(t, allowed, fine, "an error reply is a result")
		require.Zero(t, bad)

		require.NoError(t, r.Do(bg, scripted.ReplayEcho("d")))
		pass(time.Second)
		before := allowed
		allowed, _, fine, bad = lim.counts()
		require.Equal(t, before+2, allowed)
		require.Equal(t, 1, bad, "the transport error is reported for the claim it took")
		require.Equal(t, allowed, fine+bad)

		lim.deny(errors.New("busy"))
		x := scripted.Echo("x")
		failsAs(t, r.Do(bg, x), carry.NotSent, fdengine.ErrDenied, fdengine.ErrNotSent)
		require.Zero(t, r.server.Executions("x"))
		pass(time.Second)
		a2, denied, f2, b2 := lim.counts()
		require.Equal(t, []int{allowed, 1, fine, bad}, []int{a2, denied, f2, b2}, "a denial gets no report")
	})
}

// Covers: E-17, S4-14, E-7
func TestALimiterThatFailsIsADenialOrNothing(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		lim := &limiter{}
		bubble(t, setup{Engine: fdengine.Options{Limiter: lim}}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Do(bg, scripted.Echo("a")))
			synctest.Wait()
			lim.onAllow = deed
			st := r.Stream()
			err := st.Do(bg, scripted.ReplayEcho("b"))
			failsAs(t, err, carry.NotSent, fdengine.ErrDenied)
			var p *panics.Error
			require.ErrorAs(t, err, &p)
			require.ErrorIs(t, st.Flush(bg), fdengine.ErrStreamBroken)
			synctest.Wait()
			lim.onAllow, lim.onReport = nil, deed
			for _, c := range echoes("c", 5, carry.NoRetry) {
				require.NoError(t, r.Do(bg, c))
			}
			pass(time.Second)
			require.Equal(t, 1, r.server.Conns(), "the connection lives")
			allowed, _, fine, bad := lim.counts()
			require.Equal(t, allowed, fine+bad)
			require.Equal(t, 6, r.server.Executed())
		})
	})
}
