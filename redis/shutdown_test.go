package redis

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// witnessed is told each outcome, with how many connections the server had then.
type witnessed struct {
	server *scripted.Server
	mu     struct {
		sync.Mutex
		errs  []error
		conns []int
	}
}

func (w *witnessed) Complete(_ fdengine.Command, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.errs, w.mu.conns = append(w.mu.errs, err), append(w.mu.conns, w.server.OpenConns())
}

// Covers: E-20
func TestShutdownDrainsOnceAndBeforeThePoolsCloseHoweverOftenItIsCalled(t *testing.T) {
	slow := scripted.Options{Script: func(*scripted.ServerConn, scripted.Request) scripted.Action {
		return scripted.Delay(10 * time.Millisecond)
	}}
	for _, lanes := range []int{1, 3} {
		bubble(t, slow, Options{Lanes: lanes}, func(t *testing.T, r *rig) {
			ctx := context.Background()
			w := &witnessed{server: r.server}
			const n = 30
			for range n {
				require.NoError(t, r.Submit(ctx, Incr("n"), w))
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if _, err := r.Shutdown(ctx); err != nil {
						t.Errorf("%v", err)
					}
				})
			}
			wg.Wait()
			<-r.Done()
			require.Len(t, w.mu.errs, n)
			for i, err := range w.mu.errs {
				require.NoError(t, err)
				require.Positive(t, w.mu.conns[i], "its connection is not closed before")
			}
			require.Equal(t, n, r.server.Executed())
			require.Zero(t, r.Stats().Pool.Open)
			require.ErrorIs(t, r.Do(ctx, Echo("late")), fdengine.ErrClosed)
		})
	}
}
