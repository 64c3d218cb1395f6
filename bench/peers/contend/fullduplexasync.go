package contend

import (
	"context"
	"errors"

	"github.com/fdengine/fullduplex/fdengine"
)

// streamGroup is how many commands are submitted together and share one wake of the submitter: as many as the batches of the peers
// that are compared with it have.
const streamGroup = 100

// submitter is the asynchronous face of an engine.
type submitter interface {
	Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error
	SubmitBatch(ctx context.Context, cmds []fdengine.Command, done fdengine.Completion) (n int, err error)
}

// Stream makes groups of commands; the submitter waits once per group, for the one that has been under way longest.
func (f *fullduplex) Stream(window int) (Flow, error) {
	fl := &flow{to: f, single: f.single}
	shared := f.make(0)
	_, stateless := shared.(*encoded)
	for i := range max(2, window/streamGroup) {
		g := &group{all: fdengine.NewGroup()}
		for j := range streamGroup {
			cmd := shared
			if !stateless {
				cmd = f.make(i*streamGroup + j)
			}
			g.cmds = append(g.cmds, cmd.command())
			g.checks = append(g.checks, cmd)
		}
		fl.groups = append(fl.groups, g)
	}
	return fl, nil
}

// flow is all groups; they take turns.
type flow struct {
	to     submitter
	single bool // commands are submitted one by one
	groups []*group
	next   int
}

func (f *flow) Run(more func() bool) (n int64, err error) {
	for err == nil && more() {
		g := f.groups[f.next%len(f.groups)]
		f.next++
		if err = g.finish(); err == nil {
			err = g.submit(f.to, f.single)
			n += streamGroup
		}
	}
	if err != nil {
		return n, err // what is under way is left to the engine that is about to be closed
	}
	for _, g := range f.groups {
		err = errors.Join(err, g.finish())
	}
	return n, err
}

// group is some commands that are submitted and waited for together.
type group struct {
	cmds   []fdengine.Command
	checks []checked
	all    *fdengine.Group
	used   bool
}

// submit sends the group. When that fails in the middle, what was accepted is left to the engine that is about to be
// closed.
func (g *group) submit(to submitter, single bool) error {
	g.used = true
	g.all.Add(len(g.cmds))
	if !single {
		_, err := to.SubmitBatch(context.Background(), g.cmds, g.all)
		return err
	}
	for _, c := range g.cmds {
		if err := to.Submit(context.Background(), c, g.all); err != nil {
			return err
		}
	}
	return nil
}

// finish waits for the last use and checks its replies.
func (g *group) finish() error {
	if !g.used {
		return nil
	}
	if err := g.all.Wait(context.Background()); err != nil {
		return err
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
	g := fdengine.NewGroup()
	g.Add(n)
	for i := range n {
		if i == n-1 {
			full()
		}
		if err := f.Submit(context.Background(), cmd, g); err != nil {
			return 0, nil, err
		}
	}
	return len(req), func() error { return g.Wait(context.Background()) }, nil
}

var errStateful = errors.New("fullduplex: only a command without state can be under way many times")
