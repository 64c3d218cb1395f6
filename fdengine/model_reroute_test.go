package fdengine_test

import (
	"errors"
	"runtime"

	"github.com/fdengine/fullduplex/fdengine"
)

// ferry takes carries from one engine of world to the other.
type ferry struct {
	w    *world
	back bool
}

func (f ferry) Reroute(_ error, cs []*fdengine.Carry) {
	if f.back {
		f.w.Adopt(cs...)
		return
	}
	for _, c := range cs {
		f.w.second.Adopt(c)
	}
}

var errNowhere = errors.New("nowhere to go")

// Reroute makes world the engine's Rerouter: everything comes back to the engine, or, mixed, some of it fails.
func (w *world) Reroute(_ error, cs []*fdengine.Carry) {
	if w.p.opt.reroute == rerouteHere || w.calm.Load() {
		w.Adopt(cs...)
		return
	}
	for _, c := range cs {
		w.mu.Lock()
		n := w.dice.IntN(40)
		w.mu.Unlock()
		switch {
		case n == 0:
			panic("reroute")
		case n == 1:
			runtime.Goexit()
		case n < 8:
			c.Fail(errNowhere)
		default:
			w.Adopt(c)
		}
	}
}
