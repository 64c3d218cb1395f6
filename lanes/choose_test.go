package lanes_test

import (
	"errors"
	"fmt"
	"slices"
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

// Covers: E-32
func TestAKeyAlwaysGoesToTheSameLaneByWhateverWayAndItsOrderIsThatOfTheCaller(t *testing.T) {
	bubble(t, setup{n: 4}, func(t *testing.T, r *rig) {
		const keys, rounds = 16, 40
		o := &outcomes{}
		var want [keys][]string
		at := map[string]int{} // lane by token
		for i := range rounds {
			var cmds, lot []fdengine.Command
			for k := range keys {
				key, token := "k"+itoa(k), fmt.Sprintf("%d.%d", k, i)
				want[k] = append(want[k], token)
				at[token] = r.laneOf(key)
				switch c := of(key, token); i % 5 {
				case 0:
					require.NoError(t, r.Submit(bg, c, o))
				case 1:
					require.NoError(t, r.TrySubmit(c, o))
				case 2:
					cmds = append(cmds, c)
				case 3:
					s := r.StreamFor([]byte(key))
					require.NoError(t, s.Submit(bg, c, o))
				case 4:
					lot = append(lot, c)
				}
			}
			require.NoError(t, r.DoBatch(bg, cmds, nil))
			n, err := r.SubmitBatch(bg, lot, o)
			require.NoError(t, err)
			require.Len(t, lot, n)
			require.NoError(t, r.Do(bg, of("k0", "do"+itoa(i))))
			at["do"+itoa(i)] = r.laneOf("k0")
		}
		synctest.Wait()
		used := 0
		var got [keys][]string
		for lane := range 4 {
			order := r.order(lane)
			if len(order) > 0 {
				used++
			}
			for _, token := range order {
				require.Equal(t, at[token], lane, token)
				var k, i int
				if n, _ := fmt.Sscanf(token, "%d.%d", &k, &i); n == 2 {
					got[k] = append(got[k], token)
				}
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, 4, used, "16 keys leave no lane out")
	})
}

// Covers: E-32
func TestCommandsWithoutAKeyGoWhereTheFewestAreOutstanding(t *testing.T) {
	bubble(t, setup{n: 4}, func(t *testing.T, r *rig) {
		o := &outcomes{}
		for i := range 20 {
			require.NoError(t, r.Do(bg, scripted.Echo("alone"+itoa(i))))
		}
		require.Len(t, r.order(0), 20, "who is alone needs one lane only")
		r.connect(4)
		r.freeze(true)
		busy := r.keysOf()[1]
		for i := range 5 {
			require.NoError(t, r.Submit(bg, of(busy, "busy"+itoa(i)), o))
		}
		for i := range 23 { // 5+23 = 4 times 7
			require.NoError(t, r.Submit(bg, scripted.Echo("free"+itoa(i)), o))
		}
		synctest.Wait()
		for lane, e := range r.engines {
			require.Equal(t, 7, e.Stats().InFlightCommands, "lane %d", lane)
		}
		r.freeze(false)
		synctest.Wait()
		_, errs := o.all()
		require.Len(t, errs, 28)
		require.NoError(t, errors.Join(errs...))
		// What has settled does not count any more.
		for i := range 5 {
			require.NoError(t, r.Do(bg, scripted.Echo("again"+itoa(i))))
		}
		require.Equal(t, "again4", r.order(0)[len(r.order(0))-1])
	})
}

func TestAStreamStaysOnItsLaneAndManyStreamsTakeTurns(t *testing.T) {
	bubble(t, setup{n: 3}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		o := &outcomes{}
		for i := range 6 {
			s := r.Stream()
			for k, key := range keys { // the keys do not matter in a Stream
				require.NoError(t, s.Submit(bg, of(key, itoa(i)+"."+itoa(k)), o))
			}
			require.NoError(t, s.Flush(bg))
		}
		for lane := range 3 {
			var want []string
			for _, i := range []int{lane, lane + 3} {
				want = append(want, itoa(i)+".0", itoa(i)+".1", itoa(i)+".2")
			}
			require.Equal(t, want, r.order(lane))
		}
		// A busy lane is passed over.
		r.freeze(true)
		require.NoError(t, r.Submit(bg, of(keys[0], "busy"), o))
		s := r.Stream()
		r.freeze(false)
		require.NoError(t, s.Do(bg, scripted.Echo("s")))
		require.NotContains(t, r.order(0), "s")
	})
}

func TestAKeyThatPanicsFailsItsCommandOnlyAndIsNotSent(t *testing.T) {
	bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		bad := keyed{Cmd: scripted.Echo("bad"), bad: "boom"}
		o := &outcomes{}
		var pe *panics.Error
		for _, err := range []error{r.Do(bg, bad), r.Submit(bg, bad, o), r.TrySubmit(bad, o)} {
			require.ErrorAs(t, err, &pe)
			require.Equal(t, "Key", pe.Boundary)
			require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		}
		errs := make([]error, 3)
		err := r.DoBatch(bg, []fdengine.Command{of(keys[0], "a"), bad, of(keys[1], "b")}, errs)
		require.ErrorAs(t, err, &pe)
		require.Equal(t, []error{nil, err, nil}, errs)
		require.ErrorAs(t, r.only(bad), &pe)
		require.EqualValues(t, 5, r.Stats().Rejected)
		require.EqualValues(t, 2, r.Stats().Accepted)
		require.NotContains(t, slices.Concat(r.order(0), r.order(1)), "bad")
	})
}

// only is a batch of one command.
func (r *rig) only(c fdengine.Command) error {
	errs := []error{errors.New("stale")}
	err := r.DoBatch(bg, []fdengine.Command{c}, errs)
	require.Equal(r.t, errs[0], err)
	return err
}

// Covers: E-32
func TestALaneWithoutAConnectionKeepsItsKeysAndTheOthersGoOn(t *testing.T) {
	bubble(t, setup{n: 2, closed: 1}, func(t *testing.T, r *rig) {
		keys := r.keysOf()
		o := &outcomes{}
		for i := range 10 {
			require.NoError(t, r.Submit(bg, of(keys[1], "waits"+itoa(i)), o))
			require.NoError(t, r.Do(bg, of(keys[0], "goes"+itoa(i))))
		}
		pass(5 * time.Second)
		require.Len(t, r.order(0), 10)
		require.Empty(t, r.order(1))
		tokens, _ := o.all()
		require.Empty(t, tokens)
		// Without a key the lane with ten outstanding is passed over.
		require.NoError(t, r.Do(bg, scripted.Echo("free")))
		require.Contains(t, r.order(0), "free")
		r.listen(1)
		pass(2 * time.Second)
		tokens, errs := o.all()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, r.order(1), tokens)
		require.Len(t, tokens, 10)
		require.Equal(t, "waits0", tokens[0])
	})
}

func TestFaultsOfTheEnginesAreNamedAllAtOnce(t *testing.T) {
	e := plain(t)
	_, err := lanes.New(e, nil, e)
	require.ErrorContains(t, err, "engine 1 is nil")
	require.ErrorContains(t, err, "engine 2 is engine 0 again")
	_, err = lanes.New()
	require.ErrorContains(t, err, "0 engines, there must be 1 to 64")
	_, err = lanes.New(make([]*fdengine.Engine, 65)...)
	require.ErrorContains(t, err, "65 engines")
	require.NoError(t, e.Close())
	<-e.Done()
}

// plain is an engine that has nowhere to go.
func plain(t *testing.T) *fdengine.Engine {
	e, err := fdengine.New(fdengine.Options{Protocol: scripted.NewProtocol, Leaser: scripted.NewLeaser(nil)})
	require.NoError(t, err)
	return e
}
