package lanes

import (
	"context"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/panics"
)

// Do is fdengine.Engine.Do on the lane of cmd.
func (s *Lanes) Do(ctx context.Context, cmd fdengine.Command) error {
	l, err := s.choose(cmd)
	if err != nil {
		return err
	}
	l.load.Add(1)
	defer l.load.Add(-1) // also when the command's own code ends this goroutine
	return l.engine.Do(ctx, cmd)
}

// Submit is fdengine.Engine.Submit on the lane of cmd. It blocks while that lane's queue is full, whatever room the
// others have.
func (s *Lanes) Submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion) error {
	return s.submit(ctx, cmd, done, false)
}

// SubmitBatch is fdengine.Engine.SubmitBatch, each command on its lane. They enter one by one, as with Submit: neighbours seldom have the
// same lane.
func (s *Lanes) SubmitBatch(ctx context.Context, cmds []fdengine.Command, done fdengine.Completion) (n int, err error) {
	if len(cmds) == 0 {
		return s.lanes[0].engine.SubmitBatch(ctx, cmds, done)
	}
	for i, cmd := range cmds {
		if err := s.submit(ctx, cmd, done, false); err != nil {
			return i, err
		}
	}
	return len(cmds), nil
}

// TrySubmit is fdengine.Engine.TrySubmit on the lane of cmd.
func (s *Lanes) TrySubmit(cmd fdengine.Command, done fdengine.Completion) error {
	return s.submit(context.Background(), cmd, done, true)
}

func (s *Lanes) submit(ctx context.Context, cmd fdengine.Command, done fdengine.Completion, try bool) error {
	l, err := s.choose(cmd)
	if err != nil {
		return err
	}
	if g, is := done.(*fdengine.Group); done == nil || is && g == nil {
		return l.engine.Submit(ctx, cmd, done) // which says what is wrong with it
	}
	t := s.tallies.Get().(*tally)
	t.lane, t.done = l, done
	l.load.Add(1)
	accepted := false
	defer func() {
		if !accepted { // so t is not told, also when the command's own code ends this goroutine
			t.end()
		}
	}()
	if try {
		err = l.engine.TrySubmit(cmd, t)
	} else {
		err = l.engine.Submit(ctx, cmd, t)
	}
	accepted = err == nil
	return err
}

// choose finds the lane of cmd. A Key that panics fails that call, NotSent.
func (s *Lanes) choose(cmd fdengine.Command) (*lane, error) {
	i, keyed, err := s.keyLane(cmd)
	if err != nil {
		return nil, err
	}
	if !keyed {
		i = s.fewest(0)
	}
	return &s.lanes[i], nil
}

// keyLane is the lane of the key of cmd, if it has one.
func (s *Lanes) keyLane(cmd fdengine.Command) (i int, keyed bool, err error) {
	k, ok := cmd.(Keyed)
	if !ok {
		return 0, false, nil
	}
	err = panics.Catch("Key", func() error {
		var key []byte
		if key, keyed = k.Key(); keyed {
			i = s.of(key)
		}
		return nil
	})
	if err != nil {
		s.rejected.Add(1)
		return 0, false, &fdengine.CallError{Fate: carry.NotSent, Cause: err}
	}
	return i, keyed, nil
}

// tally is the completion that an engine gets for the caller's: it counts the command out of its lane first.
type tally struct {
	home *Lanes
	lane *lane
	done fdengine.Completion
}

// Complete implements fdengine.Completion.
func (t *tally) Complete(cmd fdengine.Command, err error) {
	done := t.done
	t.end()
	done.Complete(cmd, err)
}

// end counts out, and leaves t to the next Submit.
func (t *tally) end() {
	t.lane.load.Add(-1)
	t.lane, t.done = nil, nil
	t.home.tallies.Put(t)
}
