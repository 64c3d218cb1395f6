package target

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// ErrNoMark: a tube cannot be read back, since nothing tells where the jobs of the run begin.
var ErrNoMark = errors.New("it was not marked where the jobs begin (the run was begun without --verify)")

// peekAtOnce is how many jobs are looked at in one go.
const peekAtOnce = 512

// ReadBack implements Target. A beanstalkd has no way to list a tube, but its ids rise: each between the mark and
// now is looked at. Jobs that somebody has deleted are not seen; those of other tubes that were put meanwhile are.
// It uses a connection of its own.
func (t *tube) ReadBack(ctx context.Context, found func(id, queue, payload []byte)) (err error) {
	from, err := strconv.ParseUint(t.mark, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, ErrNoMark)
	}
	to, err := t.putMark(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	c, err := beanstalkd.New(t.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(c)) }()
	for next := from + 1; next < to; next += peekAtOnce {
		if err := t.peek(ctx, c, next, min(next+peekAtOnce, to), found); err != nil {
			return fmt.Errorf("%s: jobs from %d: %w", t.name, next, err)
		}
	}
	return nil
}

// peek looks at the jobs from one id up to before another.
func (t *tube) peek(ctx context.Context, c *beanstalkd.Client, from, to uint64, found func(id, queue, payload []byte)) error {
	var cmds []fdengine.Command
	for id := from; id < to; id++ {
		cmds = append(cmds, beanstalkd.Peek(id))
	}
	errs := make([]error, len(cmds))
	_ = c.DoBatch(ctx, cmds, errs) // its error is one of errs
	for i, err := range errs {
		switch {
		case errors.Is(err, beanstalkd.ErrNotFound):
			continue
		case torn(err):
			found(nil, nil, nil)
			continue
		case err != nil:
			return err
		}
		_, data, err := cmds[i].(*beanstalkd.Cmd).Job()
		if err != nil {
			return err
		}
		t.spec.body.show(data, found)
	}
	return nil
}

// torn says that the server answered with a job whose body does not end as it must. A beanstalkd that was killed
// while it wrote a job to its binlog has such a one afterwards: it was never answered for, and its body is zeros. It
// is shown as a job of nobody.
func torn(err error) bool {
	var pe *beanstalk.ProtocolError
	return errors.Is(err, fdengine.ErrBudget) && errors.As(err, &pe)
}
