package contend

import (
	"context"
	"sync/atomic"

	"github.com/fdengine/fullduplex/fdengine"
)

// tally counts the commands that were answered.
type tally struct{ answered atomic.Int64 }

// Complete implements fdengine.Completion.
func (t *tally) Complete(_ fdengine.Command, err error) {
	if err == nil {
		t.answered.Add(1)
	}
}

// Flood implements Flooder.
func (f *fullduplex) Flood() (answered func() int64, limit int, err error) {
	t := new(tally)
	cmd, shared := f.make(0).(*encoded)
	if !shared {
		return nil, 0, errStateful
	}
	f.flood.Go(func() {
		for f.Submit(context.Background(), cmd, t) == nil {
		}
	})
	return t.answered.Load, f.limit, nil
}
