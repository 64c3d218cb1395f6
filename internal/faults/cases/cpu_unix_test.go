//go:build unix

package cases_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
)

// cpu is what this process has used.
func cpu(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// slowStormCPU measures an engine whose connections are closed before anything is read, on the real clock.
func slowStormCPU(t *testing.T, eo fdengine.Options) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dials := make(chan int)
	go func() {
		n := 0
		for {
			c, err := ln.Accept()
			if err != nil {
				dials <- n
				return
			}
			n++
			_ = c.Close()
		}
	}()
	e, b, l := tcpEngine(t, ln.Addr().String(), eo)
	whole := time.Duration(tally.Count(1, 5)) * time.Second
	ctx, cancel := context.WithTimeout(bg, whole)
	defer cancel()
	before := cpu(t)
	fails(t, b.do(ctx, "main", e, again("x", 100)), carry.NotSent, context.DeadlineExceeded)
	used := cpu(t) - before
	require.Less(t, used, whole/10, "less than a tenth of a core")
	require.NoError(t, e.Close())
	<-e.Done()
	even(t, e.Stats())
	require.NoError(t, l.Check())
	l.Close()
	require.NoError(t, ln.Close())
	require.LessOrEqual(t, <-dials, 25)
	tally.Scenario(1)
}
