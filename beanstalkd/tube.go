package beanstalkd

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// tubes says how the commands of one client reach their tube: it is used for good by the handshake, or by each
// command for itself. A mix would let commands of the first kind follow those of the second into their tube.
type tubes struct {
	own   string
	many  bool
	limit int // bytes of a job; 0 = not checked
	next  func(ctx context.Context, cmd fdengine.Command) error
}

// place is what a command knows about that; it is part of a Put and of a Cmd.
type place struct {
	use   string // the tube of a `use` before the command; empty: none
	bound bool   // a client has decided about it
}

// gate is the Gate of an engine: it runs on the caller's goroutine before a command is encoded, by whichever way it
// came.
func (t *tubes) gate(ctx context.Context, cmd fdengine.Command) error {
	var err error
	switch c := cmd.(type) {
	case *Put:
		c.place, err = t.placeOf(c.Tube)
		if t.limit > 0 && len(c.Body) > t.limit {
			err = &sizeError{len(c.Body), t.limit}
		}
	case *Cmd:
		if c.verb().tubed {
			c.place, err = t.placeOf(c.tube)
		}
	}
	if err == nil && t.next != nil {
		err = t.next(ctx, cmd)
	}
	return err
}

func (t *tubes) placeOf(want string) (place, error) {
	if want == "" {
		want = t.own
	}
	switch {
	case t.many:
		return place{use: want, bound: true}, nil
	case want != t.own:
		return place{}, fmt.Errorf("%w: it uses %q, the command names %q; Options.ManyTubes allows both",
			ErrOtherTube, t.own, want)
	}
	return place{bound: true}, nil
}

// resolve returns the tube of the `use` to send before the command, for one that names tube want.
func (p *place) resolve(want string) string {
	if !p.bound {
		p.use = want
	}
	return p.use
}

// seconds is d in the unit of the protocol, rounded up.
func seconds(what string, d time.Duration) (uint32, error) {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	if d < 0 || n > math.MaxUint32 {
		return 0, fmt.Errorf("beanstalkd: %s is %v, it must be 0 to %d s", what, d, uint32(math.MaxUint32))
	}
	return uint32(n), nil
}

// appendUse appends a `use` when there is a tube for it.
func appendUse(dst []byte, tube string) ([]byte, error) {
	if tube == "" {
		return dst, nil
	}
	return beanstalk.AppendUse(dst, tube)
}
