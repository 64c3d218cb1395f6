package fdengine

import (
	"errors"

	"github.com/fdengine/fullduplex/carry"
)

// Fault acts as if the engine's own code had panicked in the running session. corrupt breaks the log first: it acks
// the oldest record in flight twice.
func (e *Engine) Fault(corrupt bool) {
	l := &e.log
	l.Lock()
	s := e.sess
	if corrupt {
		var c carry.Chunk[entry]
		l.Begin(&c)
		c.Take()
		twice := c
		l.End(&c)
		l.End(&twice)
	}
	l.Unlock()
	e.fault(s, errors.New("a bug of ours"))
}

// LegalMoves is the table of the states by name.
func LegalMoves() map[string][]string {
	out := map[string][]string{}
	for from, tos := range stateMoves {
		for _, to := range tos {
			out[from.String()] = append(out[from.String()], to.String())
		}
	}
	return out
}

// SetSoloAfter changes how many lone replies in a row make the reader stand by, on any connection; 0 = none ever do. To be called before
// the first command. An engine whose options forbid it stays as it is.
func (e *Engine) SetSoloAfter(n int) {
	e.log.Lock()
	defer e.log.Unlock()
	if e.opt.mayGoSolo() {
		e.soloAfter, e.opt.LoneCaller = n, 1
	}
}

// SetWorthWaiting changes how many callers make a chain that the reader waits for, to write afterwards. To be called before the first
// command.
func (e *Engine) SetWorthWaiting(n int) {
	e.log.Lock()
	defer e.log.Unlock()
	e.worthWaiting = n
}

// Gathers is for how many bytes the reader waits.
func (e *Engine) Gathers() int {
	e.log.Lock()
	defer e.log.Unlock()
	if e.sess == nil {
		return 0
	}
	return e.sess.told
}

// Chains counts the chains of callers that are waking each other.
func (e *Engine) Chains() int {
	e.log.Lock()
	defer e.log.Unlock()
	if e.sess == nil {
		return 0
	}
	return int(e.sess.running.Load())
}

// Spare is how many bytes of buffers of big requests wait to be used again.
func (e *Engine) Spare() int {
	e.log.Lock()
	defer e.log.Unlock()
	return e.log.Spared()
}
