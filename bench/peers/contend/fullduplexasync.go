package contend

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/fdengine/fullduplex/fdengine"
)

// streamGroup is how many commands share one wake of the submitter.
const streamGroup = 128

// submitter is the asynchronous face of an engine.
type submitter interface {
	Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error
}

// Stream makes groups of commands; the submitter is woken once per group.
func (f *fullduplex) Stream(window int) (Flow, error) {
	fl := &flow{to: f, idle: make(chan *group, max(2, window/streamGroup))}
	shared := f.make(0)
	_, stateless := shared.(*encoded)
	for i := range cap(fl.idle) {
		g := &group{idle: fl.idle}
		for j := range streamGroup {
			cmd := shared
			if !stateless {
				cmd = f.make(i*streamGroup + j)
			}
			g.cmds = append(g.cmds, cmd.command())
			g.checks = append(g.checks, cmd)
		}
		fl.idle <- g
	}
	return fl, nil
}

// flow is all groups; idle holds those that are not under way.
type flow struct {
	to   submitter
	idle chan *group
}

func (f *flow) Run(more func() bool) (n int64, err error) {
	for err == nil && more() {
		g := <-f.idle
		if err = g.finish(); err == nil {
			err = g.submit(f.to)
			n += streamGroup
		}
		if err != nil {
			f.idle <- g
		}
	}
	if err != nil {
		return n, err // what is under way is left to the engine that is about to be closed
	}
	all := make([]*group, 0, cap(f.idle))
	for range cap(f.idle) {
		g := <-f.idle
		all = append(all, g)
		err = errors.Join(err, g.finish())
	}
	for _, g := range all {
		f.idle <- g
	}
	return n, err
}

// group is some commands that are submitted together and the completion of all of them.
type group struct {
	cmds   []fdengine.Command
	checks []checked
	left   atomic.Int32
	failed atomic.Pointer[error]
	used   bool
	idle   chan *group // has room for all groups
}

// Complete implements fdengine.Completion.
func (g *group) Complete(_ fdengine.Command, err error) {
	if err != nil {
		first := err // so that only a failure puts it on the heap
		g.failed.Store(&first)
	}
	if g.left.Add(-1) == 0 {
		g.idle <- g
	}
}

// submit sends the group. When that fails in the middle, what was accepted is left to the engine that is about to be
// closed.
func (g *group) submit(to submitter) error {
	g.used = true
	g.left.Store(int32(len(g.cmds)))
	for _, c := range g.cmds {
		if err := to.Submit(context.Background(), c, g); err != nil {
			g.left.Store(1 << 30)
			return err
		}
	}
	return nil
}

// finish checks the replies of the last use.
func (g *group) finish() error {
	if !g.used {
		return nil
	}
	if err := g.failed.Load(); err != nil {
		return *err
	}
	g.used = false
	for _, c := range g.checks {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// Replay implements Replayer.
func (f *fullduplex) Replay(n int, full func()) (encodedSize int, wait func() error, err error) {
	cmd, shared := f.make(0).(*encoded)
	if !shared {
		return 0, nil, errStateful
	}
	req, err := cmd.AppendRequest(nil)
	if err != nil {
		return 0, nil, err
	}
	g := &group{idle: make(chan *group, 1)}
	g.left.Store(int32(n))
	for i := range n {
		if i == n-1 {
			full()
		}
		if err := f.Submit(context.Background(), cmd, g); err != nil {
			return 0, nil, err
		}
	}
	return len(req), func() error {
		<-g.idle
		if err := g.failed.Load(); err != nil {
			return *err
		}
		return nil
	}, nil
}

var errStateful = errors.New("fullduplex: only a command without state can be under way many times")
