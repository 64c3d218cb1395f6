package lanes_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// free is the lane that a command without a key goes to now. Lane 0 is the one when nothing is outstanding.
func (r *rig) free(token string) int {
	o := &outcomes{}
	require.NoError(r.t, r.TrySubmit(scripted.Echo(token), o))
	synctest.Wait()
	for lane, s := range r.servers {
		for i := range s.Conns() {
			for _, got := range s.ConnTokens(i) {
				if got == token {
					return lane
				}
			}
		}
	}
	r.t.Fatal("it went nowhere")
	return -1
}

// Covers: E-32
func TestEveryWayOfSubmittingIsLoadUntilItHasSettledAndNoLonger(t *testing.T) {
	o := &outcomes{}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	ways := map[string]func(r *rig, key, other string){
		"Do":     func(r *rig, key, _ string) { _ = r.Do(bg, of(key, "x")) },
		"Submit": func(r *rig, key, _ string) { _ = r.Submit(bg, of(key, "x"), o) },
		"TrySubmit": func(r *rig, key, _ string) {
			_ = r.TrySubmit(of(key, "x"), o)
		},
		"SubmitBatch": func(r *rig, key, _ string) {
			_, _ = r.SubmitBatch(bg, []fdengine.Command{of(key, "x"), of(key, "y")}, o)
		},
		"batch on one lane": func(r *rig, key, _ string) {
			_ = r.DoBatch(bg, []fdengine.Command{of(key, "x"), of(key, "y")}, nil)
		},
		"batch on two lanes": func(r *rig, key, other string) {
			_ = r.DoBatch(bg, []fdengine.Command{of(key, "x"), of(other, "z"), of(key, "y")}, nil)
		},
		"a batch whose caller leaves": func(r *rig, key, other string) {
			_ = r.DoBatch(ctx, []fdengine.Command{of(key, "x"), of(other, "z"), of(key, "y")}, nil)
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
				keys := r.keysOf()
				r.connect(2)
				require.Zero(t, r.free("before"))
				r.servers[0].FreezeExec(true)
				go way(r, keys[0], keys[1])
				synctest.Wait()
				require.Equal(t, 1, r.free("during"))
				if name == "a batch whose caller leaves" {
					cancel()
				}
				r.servers[0].FreezeExec(false)
				synctest.Wait()
				require.Zero(t, r.free("after"))
			})
		})
	}
}

func TestWhatIsRefusedIsNoLoad(t *testing.T) {
	bad := func(key string) keyed { return keyed{Cmd: &scripted.Cmd{EncodeErr: errors.New("no")}, key: key} }
	o := &outcomes{}
	for name, way := range map[string]func(r *rig, key, other string){
		"Do":        func(r *rig, key, _ string) { _ = r.Do(bg, bad(key)) },
		"Submit":    func(r *rig, key, _ string) { _ = r.Submit(bg, bad(key), o) },
		"TrySubmit": func(r *rig, key, _ string) { _ = r.TrySubmit(bad(key), o) },
		"SubmitBatch": func(r *rig, key, other string) {
			n, err := r.SubmitBatch(bg, []fdengine.Command{of(key, "good"), bad(key), of(other, "x")}, o)
			if n != 1 || fdengine.FateOf(err) != carry.NotSent {
				panic("accepted")
			}
			if n, err := r.SubmitBatch(bg, nil, nil); n != 0 || err == nil {
				panic("nobody to tell")
			}
		},
		"batch": func(r *rig, key, other string) { _ = r.DoBatch(bg, []fdengine.Command{bad(key), bad(other)}, nil) },
		"no completion": func(r *rig, key, _ string) {
			if r.Submit(bg, of(key, "x"), nil) == nil || r.TrySubmit(of(key, "x"), (*fdengine.Group)(nil)) == nil {
				panic("accepted")
			}
		},
		"a Do that ends its goroutine":     func(r *rig, key, _ string) { _ = r.Do(bg, leaver{of(key, "x")}) },
		"a Submit that ends its goroutine": func(r *rig, key, _ string) { _ = r.Submit(bg, leaver{of(key, "x")}, o) },
		"a batch that ends its goroutine": func(r *rig, key, other string) {
			_ = r.DoBatch(bg, []fdengine.Command{leaver{of(key, "x")}, of(other, "y")}, nil)
		},
		"a batch on one lane that ends its goroutine": func(r *rig, key, _ string) {
			_ = r.DoBatch(bg, []fdengine.Command{leaver{of(key, "x")}}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{n: 2}, func(t *testing.T, r *rig) {
				keys := r.keysOf()
				r.connect(2)
				for range 3 {
					go way(r, keys[0], keys[1])
				}
				synctest.Wait()
				require.Zero(t, r.free("after"))
			})
		})
	}
}

// leaver ends the goroutine that encodes it.
type leaver struct{ keyed }

func (leaver) AppendRequest([]byte) ([]byte, error) { runtime.Goexit(); return nil, nil }
