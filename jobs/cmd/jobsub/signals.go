package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interruptible returns a context that the first SIGINT or SIGTERM ends, after first was called. The second one
// ends the process at once, after last was called. stop puts the signals back to what they were.
func interruptible(parent context.Context, first, last func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-signals:
				if n > 1 {
					last()
					os.Exit(exitInterrupted)
				}
				first()
				cancel()
			case <-quit:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		wg.Wait()
		cancel()
	}
}
