package lanes

import (
	"context"
	"sync"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/panics"
)

// watch waits for the end of one engine, which is the end of all, unless Shutdown lets them end one by one.
func (s *Lanes) watch(e *fdengine.Engine) {
	select {
	case <-e.Ready():
		s.first.Do(func() { close(s.ready) })
		<-e.Done()
	case <-e.Done():
	}
	if !s.draining.Load() {
		_ = s.Close()
	}
	if s.running.Add(-1) == 0 {
		close(s.done)
	}
}

// Ready is closed when some lane has had a first usable connection. Lanes dial only when there is work for them: Ping
// asks for a connection of each.
func (s *Lanes) Ready() <-chan struct{} { return s.ready }

// Done is closed when all engines have ended and their goroutines are gone.
func (s *Lanes) Done() <-chan struct{} { return s.done }

// Ping pings all lanes at the same time, which dial for it if they must, and waits for their replies. The error is
// that of the first lane that has one.
func (s *Lanes) Ping(ctx context.Context) error {
	errs := make([]error, len(s.lanes))
	var wait sync.WaitGroup
	for i := range s.lanes {
		wait.Go(func() {
			// The maker of pings is the user's.
			errs[i] = panics.Isolate("Ping", func() error { return s.lanes[i].engine.Ping(ctx) })
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Shutdown is fdengine.Engine.Shutdown of all lanes at the same time, each bounded by ctx; the report is their sum.
// A lane that has nothing left to do ends without waiting for the others. While it begins, one lane may still accept
// what another already refuses.
func (s *Lanes) Shutdown(ctx context.Context) (fdengine.Report, error) {
	s.draining.Store(true)
	reports, errs := make([]fdengine.Report, len(s.lanes)), make([]error, len(s.lanes))
	var wait sync.WaitGroup
	for i := range s.lanes {
		wait.Go(func() { reports[i], errs[i] = s.lanes[i].engine.Shutdown(ctx) })
	}
	wait.Wait()
	var sum fdengine.Report
	var err error
	for i, r := range reports {
		sum.Answered += r.Answered
		sum.NotSent += r.NotSent
		sum.MaybeExecuted += r.MaybeExecuted
		if err == nil {
			err = errs[i]
		}
	}
	return sum, err
}

// Close is fdengine.Engine.Close of all lanes. It waits for nothing and may be called in a completion. The error is
// always nil.
func (s *Lanes) Close() error {
	for i := range s.lanes {
		_ = s.lanes[i].engine.Close()
	}
	return nil
}
