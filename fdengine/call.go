package fdengine

import (
	"github.com/fdengine/fullduplex/carry"
)

// entry is what the log keeps for the engine: the command and who is told. done is a *call, a *member, the idle
// pinger, or a user's Completion.
type entry struct {
	cmd  Command
	done Completion
}

// call is one Do: where its outcome arrives. Calls are pooled; see clean.
type call struct {
	ticket carry.Ticket[entry]
	waiter
	err   error
	start int64
	plain bool // its ctx cannot end
	clean bool // the reader delivered it: no ghost can point at the ticket, it may be used again
	solo  bool // its caller wrote and read for itself
}

func newCall() any { return &call{waiter: newWaiter()} }

// Complete makes call a Completion so that an entry can hold it; the engine calls finish.
func (c *call) Complete(_ Command, err error) { c.finish(err) }

func (c *call) finish(err error) {
	c.err = err
	c.ready <- struct{}{}
}

// release puts c back for the next Do.
func (e *Engine) release(c *call) {
	c.err, c.clean, c.solo = nil, false, false
	e.calls.Put(c)
}

// pinger is the completion of the idle ping, which is nobody's command and is not counted.
type pinger struct{}

func (*pinger) Complete(Command, error) {}

var thePinger = new(pinger)

// counted says whether the entry is a user's command.
func (n *entry) counted() bool { return n.done != Completion(thePinger) }
