package target

import (
	"context"
	"sync"
)

// again sends commands once more that were refused because the server had forgotten the script. Completions may
// not wait for room in the queue, so a goroutine does, for as long as there is something to send.
type again struct {
	wg sync.WaitGroup
	mu struct {
		sync.Mutex
		waiting []*push
		running bool
	}
}

func (a *again) add(p *push) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.waiting = append(a.mu.waiting, p)
	if !a.mu.running {
		a.mu.running = true
		a.wg.Go(a.run)
	}
}

// take returns what waits; nil ends the goroutine.
func (a *again) take() []*push {
	a.mu.Lock()
	defer a.mu.Unlock()
	ps := a.mu.waiting
	a.mu.waiting = nil
	a.mu.running = len(ps) > 0
	return ps
}

func (a *again) run() {
	for ps := a.take(); len(ps) > 0; ps = a.take() {
		for _, p := range ps {
			// Room comes, or the client is closed: both end the wait.
			if err := p.t.client.Submit(context.Background(), p, completions{}); err != nil {
				p.complete(err)
			}
		}
	}
}

// wait returns when nothing is under way. Nothing may be added meanwhile.
func (a *again) wait() { a.wg.Wait() }
