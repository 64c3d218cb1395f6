package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
)

// replay measures how long a client needs to get Window unanswered commands answered after their connection was
// cut: Seconds is from the submit of the last one, at which the server cuts, to the last answer, CPU per command
// likewise. Warm and Length are not used.
func replay(ctx context.Context, who contend.Contender, s Spec) (r Result, err error) {
	c, err := who.Open(ctx, contend.Target{Addr: s.Addr, InFlight: s.Window})
	if err != nil {
		return r, fmt.Errorf("%s: open: %w", s.Contender, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	f, is := c.(contend.Replayer)
	if !is {
		return r, ErrNoFace
	}
	if err := nullserver.Hold(s.Addr, s.Window); err != nil {
		return r, err
	}
	idle, full := heap(), uint64(0)
	encoded, wait, err := f.Replay(s.Window, func() { full = heap() })
	if err != nil {
		return r, err
	}
	from := before(c)
	if err := wait(); err != nil {
		return r, err
	}
	to := after(c)
	per(&r, int64(s.Window), from, to)
	r.Total = 2 * int64(s.Window) // each was sent twice
	r.Encoded = float64(encoded)
	if full > idle {
		r.InFlight = float64(full-idle) / float64(s.Window)
	}
	return r, nil
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
