package lanes_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// tokensOf is what the lane was told, without the retries: each token once, in the order of its first execution.
func (r *rig) runs(lane int) (order []string, times map[string]int) {
	times = map[string]int{}
	for _, token := range r.order(lane) {
		if times[token]++; times[token] == 1 {
			order = append(order, token)
		}
	}
	return order, times
}

// Covers: E-32
func TestACutOfOneLaneIsReplayedThereInOrderAndTouchesNoOther(t *testing.T) {
	bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(2)
		r.freeze(true)
		o := &outcomes{}
		var want []string
		for i := range 30 {
			c := of(keys[i%2], "t"+itoa(i))
			c.Traits.Class = carry.Replay
			if i%6 == 4 {
				c.Traits.Class = carry.NoRetry
			}
			require.NoError(t, r.Submit(bg, c, o))
			if i%2 == 0 && i%6 != 4 {
				want = append(want, c.Token)
			}
		}
		synctest.Wait()
		r.servers[0].CloseConns()
		synctest.Wait()
		r.freeze(false)
		pass(2 * time.Second)
		tokens, errs := o.all()
		require.Len(t, tokens, 30)
		for i, err := range errs {
			var n int
			for _, c := range tokens[i][1:] {
				n = n*10 + int(c-'0')
			}
			if n%2 == 0 && n%6 == 4 {
				require.ErrorIs(t, err, fdengine.ErrMaybeExecuted, tokens[i])
				continue
			}
			require.NoError(t, err, tokens[i])
		}
		order, times := r.runs(0)
		require.Equal(t, want, order, "nothing had run before the cut")
		for token, n := range times {
			require.Equal(t, 1, n, token)
		}
		order, _ = r.runs(1)
		require.Len(t, order, 15)
		require.EqualValues(t, 1, r.Stats().Cuts)
		require.EqualValues(t, 1, r.leasers[1].Counts().Dials)
	})
}

// A caller who changes to another lane because the one of its key is in backoff would overtake what waits there.
// Covers: E-32
func TestNothingOvertakesInABackoff(t *testing.T) {
	bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(2)
		r.servers[0].RefuseConns(true)
		r.servers[0].CloseConns()
		synctest.Wait()
		o := &outcomes{}
		for i := range 20 {
			require.NoError(t, r.Submit(bg, of(keys[0], "t"+itoa(i)), o))
			pass(50 * time.Millisecond)
		}
		require.Contains(t, r.Stats().State, "/")
		require.Empty(t, r.order(1))
		r.servers[0].RefuseConns(false)
		pass(3 * time.Second)
		tokens, errs := o.all()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, tokens, r.order(0))
		require.Len(t, tokens, 20)
		require.Equal(t, "t19", tokens[19])
	})
}

// Covers: E-32
func TestACommandThatKillsItsConnectionEachTimeIsPoisonedInItsLane(t *testing.T) {
	o := setup{n: 2, server: scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token() == "poison" {
			return scripted.DropBefore()
		}
		return scripted.Action{}
	}}}
	bubble(t, o, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		r.connect(2)
		r.freeze(true)
		told := &outcomes{}
		poison := of(keys[0], "poison")
		poison.Traits.Class = carry.Replay
		require.NoError(t, r.Submit(bg, poison, told))
		for i := range 10 {
			c := of(keys[i%2], "t"+itoa(i))
			c.Traits.Class = carry.Replay
			require.NoError(t, r.Submit(bg, c, told))
		}
		r.freeze(false)
		pass(10 * time.Second)
		tokens, errs := told.all()
		require.Len(t, tokens, 11)
		for i, token := range tokens {
			if token == "poison" {
				require.ErrorIs(t, errs[i], fdengine.ErrPoisoned)
			} else {
				require.NoError(t, errs[i], token)
			}
		}
		require.EqualValues(t, 1, r.leasers[1].Counts().Dials)
	})
}
