package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/fdengine/fullduplex/panics"
)

// Reason is the short class of why a connection was closed, for Stats.
type Reason uint8

const (
	ReasonOther      Reason = iota // Remove with an error of no class below
	ReasonClean                    // Remove without one
	ReasonPeerClosed               // the peer closed or reset it
	ReasonTimeout                  // Remove with a timeout
	ReasonCut                      // it was closed on our side already
	ReasonPanic                    // Remove with a *panics.Error
	ReasonOnPut                    // OnPut failed
	ReasonHandoff                  // marked for handoff, and no OnPut to do it
	ReasonStray                    // unexpected bytes while idle
	ReasonIdle                     // IdleTimeout
	ReasonAge                      // MaxAge
	ReasonExcess                   // MaxIdle
	ReasonFence                    // idle, closed to make room for a dial that fences
	ReasonClosed                   // the pool was closed
	reasons                        // how many there are
)

var reasonNames = [reasons]string{
	"other", "clean", "peer closed", "timeout", "cut", "panic", "onput", "handoff", "stray bytes", "idle", "age",
	"excess", "fence", "pool closed",
}

func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// reasonOf classes the why of a Remove. The methods of a foreign error run behind a border.
func reasonOf(why error) (r Reason) {
	_ = panics.Catch("error", func() error { r = classOf(why); return nil })
	return r
}

func classOf(why error) Reason {
	var timeout interface{ Timeout() bool }
	switch {
	case why == nil:
		return ReasonClean
	case is[*panics.Error](why):
		return ReasonPanic
	case peerClosed(why):
		return ReasonPeerClosed
	case errors.Is(why, os.ErrDeadlineExceeded), errors.Is(why, context.DeadlineExceeded),
		errors.As(why, &timeout) && timeout.Timeout():
		return ReasonTimeout
	case errors.Is(why, net.ErrClosed):
		return ReasonCut
	}
	return ReasonOther
}
