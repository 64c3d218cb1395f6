package differential

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/redis"
)

// ours runs the program of one caller through the library.
type ours struct {
	*redis.Client
	results []string
	open    sync.WaitGroup // submitted and not completed
}

// place is where the outcome of one submitted command goes.
type place struct {
	o   *ours
	cmd *redis.Cmd
	op  *op
	at  int
}

// Complete runs on the reader's goroutine.
func (p *place) Complete(_ fdengine.Command, err error) {
	p.o.results[p.at] = answer(p.cmd, p.op, err)
	p.o.open.Done()
}

// runOurs runs the programs at the same time over the one connection of c, and returns the outcomes of each.
func runOurs(t *testing.T, c *redis.Client, programs []*program) [][]string {
	var callers sync.WaitGroup
	runs := make([]*ours, len(programs))
	for i, p := range programs {
		runs[i] = &ours{Client: c, results: make([]string, p.size)}
		callers.Go(func() { runs[i].program(t.Context(), p) })
	}
	callers.Wait()
	results := make([][]string, len(programs))
	for i, r := range runs {
		results[i] = r.results
	}
	return results
}

func (o *ours) program(ctx context.Context, p *program) {
	s := o.Stream()
	for i := range p.pieces {
		pc := &p.pieces[i]
		switch pc.manner {
		case submit:
			o.submit(ctx, o.Client, pc)
		case stream:
			o.submit(ctx, s, pc)
		case batch:
			o.batch(ctx, pc)
		case all:
			o.all(ctx, pc)
		case do:
			for j := range pc.ops {
				c := newCmd(&pc.ops[j])
				err := o.Do(ctx, c)
				o.results[pc.first+j] = answer(c, &pc.ops[j], err)
			}
		case tx:
			o.tx(ctx, pc)
		case blocking:
			o.open.Wait() // they take another connection
			for j := range pc.ops {
				c := newCmd(&pc.ops[j])
				err := o.Blocking(ctx, c)
				o.results[pc.first+j] = answer(c, &pc.ops[j], err)
			}
		case script:
			o.script(ctx, pc)
		}
	}
	o.open.Wait()
	_ = s.Close()
}

// newCmd builds a command, by one way or another.
func newCmd(o *op) *redis.Cmd {
	if len(o.args)%2 == 0 {
		return redis.NewCmd(o.args...)
	}
	return redis.Build(o.args[0].(string)).Args(o.args[1:]...)
}

func (o *ours) submit(ctx context.Context, to fdengine.Submitter, pc *piece) {
	for j := range pc.ops {
		p := &place{o, newCmd(&pc.ops[j]), &pc.ops[j], pc.first + j}
		o.open.Add(1)
		if err := to.Submit(ctx, p.cmd, p); err != nil {
			p.Complete(p.cmd, err)
		}
	}
}

func (o *ours) batch(ctx context.Context, pc *piece) {
	cmds, errs := make([]fdengine.Command, len(pc.ops)), make([]error, len(pc.ops))
	for j := range pc.ops {
		cmds[j] = newCmd(&pc.ops[j])
	}
	_ = o.DoBatch(ctx, cmds, errs) // the first of errs
	for j := range pc.ops {
		o.results[pc.first+j] = answer(cmds[j].(*redis.Cmd), &pc.ops[j], errs[j])
	}
}

func (o *ours) all(ctx context.Context, pc *piece) {
	cmds := make([]*redis.Cmd, len(pc.ops))
	for j := range pc.ops {
		cmds[j] = newCmd(&pc.ops[j])
	}
	j := 0
	for c, err := range fdengine.SubmitAll(ctx, o.Client, slices.Values(cmds)) {
		o.results[pc.first+j] = answer(c, &pc.ops[j], err)
		j++
	}
}

func (o *ours) tx(ctx context.Context, pc *piece) {
	t := redis.NewTx()
	for j := range pc.ops {
		t.Add(newCmd(&pc.ops[j]))
	}
	err := o.Do(ctx, t)
	var te *redis.TxError
	for j, c := range t.Cmds() {
		switch r := &o.results[pc.first+j]; {
		case err != nil && !errors.As(err, &te):
			*r = "! " + err.Error()
		case te != nil && te.Aborted:
			*r = discarded(strings.TrimPrefix(te.Err.Error(), "redis: "))
		default:
			*r = answer(c, &pc.ops[j], c.Err())
		}
	}
}

// discarded is the outcome of all commands of a transaction that was not run.
func discarded(why string) string { return "discarded: " + why }

func (o *ours) script(ctx context.Context, pc *piece) {
	for j := range pc.ops {
		source, keys, args := evalParts(&pc.ops[j])
		c, err := o.EvalScript(ctx, redis.NewScript(source), keys, args...)
		o.results[pc.first+j] = answer(c, &pc.ops[j], err)
	}
}

// evalParts takes apart a command of evalRow.
func evalParts(o *op) (source string, keys []string, args []any) {
	for _, k := range o.args[3:5] {
		if b, ok := k.([]byte); ok {
			k = string(b)
		}
		keys = append(keys, k.(string))
	}
	return o.args[1].(string), keys, o.args[5:]
}

// requireHealthy checks that nothing was sent twice and that the connection lived from start to end, so that the
// replies compared are those of an undisturbed pipeline; and that it was one.
func requireHealthy(t *testing.T, c *redis.Client) {
	s := c.Stats().Engine
	require.Equal(t, s.Accepted, s.Answered, "%+v", s)
	require.Zero(t, s.Replays+s.Refusals+s.Redirects+s.Cuts+s.Retired+s.Panics, "%+v", s)
	require.EqualValues(t, 1, s.Sessions, "%+v", s)
	if *commands >= some {
		require.Greater(t, float64(s.Sent)/float64(s.Writes), 2.0, "commands per write")
	}
	t.Logf("%d records in %d writes", s.Sent, s.Writes)
}
