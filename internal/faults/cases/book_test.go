package cases_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/redis"
)

// note is one command as the oracles see it.
type note struct {
	token  string
	who    string // its submitter
	at     int    // position among that submitter's commands
	class  carry.Class
	budget int
	free   bool // may leave the order: it was refused on purpose, and goes again alone
	told   int
	err    error
	own    func() error // whether the reply is its own; asked after a nil error
}

// book keeps every command of a test and its outcome. It is the Completion of those that are submitted.
type book struct {
	budget int // what Spec.Budget 0 means
	mu     struct {
		sync.Mutex
		notes  []*note
		by     map[fdengine.Command]*note
		counts map[string]int // by submitter
		open   int
	}
	changed *sync.Cond
}

var _ fdengine.Completion = (*book)(nil)

func newBook(budget int) *book {
	b := &book{budget: budget}
	if b.budget == 0 {
		b.budget = 3
	}
	b.changed = sync.NewCond(&b.mu.Mutex)
	b.mu.by, b.mu.counts = map[fdengine.Command]*note{}, map[string]int{}
	return b
}

// caller is what commands are given to: an engine, a stream or a client.
type caller interface {
	fdengine.Submitter
	Do(ctx context.Context, cmd fdengine.Command) error
}

// add opens a note. Commands of one submitter must be added in the order in which they are submitted.
func (b *book) add(who string, cmd fdengine.Command) *note {
	n := &note{who: who}
	switch c := cmd.(type) {
	case *scripted.Cmd:
		n.scripted(b, c)
	case scriptedCmd:
		n.scripted(b, c.scripted())
	case *redis.Cmd:
		b.redis(n, c)
	default:
		panic(fmt.Sprintf("the book does not know %T", cmd))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n.at = b.mu.counts[who]
	b.mu.counts[who]++
	b.mu.notes = append(b.mu.notes, n)
	b.mu.by[cmd] = n
	b.mu.open++
	return n
}

// scriptedCmd is a command made of a scripted.Cmd.
type scriptedCmd interface{ scripted() *scripted.Cmd }

func (n *note) scripted(b *book, c *scripted.Cmd) {
	n.token, n.class, n.budget = c.Token, c.Traits.Class, b.budgetOf(c.Traits.Budget)
	n.own = func() error {
		if c.Reply != c.Token {
			return fmt.Errorf("answered %.80q", c.Reply)
		}
		return nil
	}
}

// redis reads the second word as the token, as the scripted server does, and expects it as the answer.
func (b *book) redis(n *note, c *redis.Cmd) {
	raw, err := c.AppendRequest(nil)
	if n.token = "(refused)"; err == nil { // else the client refuses it too, and nothing of it may be seen anywhere
		n.token = tokenOf(raw)
	}
	n.class, n.budget = c.Class(), b.budgetOf(c.Spec().Budget)
	n.own = func() error {
		if got, err := c.Text(); err != nil || got != n.token {
			return fmt.Errorf("answered %.80q, %v", got, err)
		}
		return nil
	}
}

func (b *book) budgetOf(spec int) int {
	if spec == 0 {
		return b.budget
	}
	return max(spec, 0)
}

// expect replaces what is looked for in the reply of cmd; nil accepts anything.
func (b *book) expect(cmd fdengine.Command, own func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.by[cmd].own = own
}

// frees says that cmd is refused on purpose and may be overtaken.
func (b *book) frees(cmds ...fdengine.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range cmds {
		b.mu.by[c].free = true
	}
}

// Complete implements fdengine.Completion.
func (b *book) Complete(cmd fdengine.Command, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.mu.by[cmd]
	if n.told++; n.told == 1 {
		n.err = err
		b.mu.open--
	}
	b.changed.Broadcast()
}

// do is c.Do(ctx, cmd) on behalf of who.
func (b *book) do(ctx context.Context, who string, c caller, cmd fdengine.Command) error {
	b.add(who, cmd)
	err := c.Do(ctx, cmd)
	b.Complete(cmd, err)
	return err
}

// submit is c.Submit(ctx, cmd) on behalf of who. A rejected command is noted with the error.
func (b *book) submit(ctx context.Context, who string, c caller, cmd fdengine.Command) error {
	b.add(who, cmd)
	err := c.Submit(ctx, cmd, b)
	if err != nil {
		b.Complete(cmd, err)
	}
	return err
}

// try is TrySubmit on behalf of who.
func (b *book) try(who string, e *fdengine.Engine, cmd fdengine.Command) error {
	b.add(who, cmd)
	err := e.TrySubmit(cmd, b)
	if err != nil {
		b.Complete(cmd, err)
	}
	return err
}

// batch is e.DoBatch on behalf of who.
func (b *book) batch(ctx context.Context, who string, e interface {
	DoBatch(context.Context, []fdengine.Command, []error) error
}, cmds []fdengine.Command) []error {
	for _, c := range cmds {
		b.add(who, c)
	}
	errs := make([]error, len(cmds))
	_ = e.DoBatch(ctx, cmds, errs) // the first of errs
	for i, c := range cmds {
		b.Complete(c, errs[i])
	}
	return errs
}

// wait blocks until everything in the book has settled.
func (b *book) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.mu.open > 0 {
		b.changed.Wait()
	}
}

// open is how many have not settled.
func (b *book) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.open
}

// err is the outcome of cmd, which must have settled.
func (b *book) err(t *testing.T, cmd fdengine.Command) error {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.mu.by[cmd]
	require.NotNil(t, n)
	require.Equal(t, 1, n.told, "%s was told so often", n.token)
	return n.err
}

// outcome is the outcome of cmd, if it has one.
func (b *book) outcome(cmd fdengine.Command) (err error, told bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.by[cmd].err, b.mu.by[cmd].told > 0
}

// ok requires that each of cmds was answered.
func (b *book) ok(t *testing.T, cmds ...fdengine.Command) {
	t.Helper()
	for _, c := range cmds {
		require.NoError(t, b.err(t, c), "%s", b.tokenOf(c))
	}
}

// failed requires an error of that fate that matches all classes.
func (b *book) failed(t *testing.T, cmd fdengine.Command, fate carry.Fate, classes ...error) {
	t.Helper()
	fails(t, b.err(t, cmd), fate, classes...)
}

func (b *book) tokenOf(cmd fdengine.Command) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.by[cmd].token
}

// count is how many settled so that f holds.
func (b *book) count(f func(token string, err error) bool) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.mu.notes {
		if x.told > 0 && f(x.token, x.err) {
			n++
		}
	}
	return n
}

// fails requires an error of that fate that matches all classes.
func fails(t *testing.T, err error, fate carry.Fate, classes ...error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, fate, fdengine.FateOf(err), "%v", err)
	for _, c := range classes {
		require.ErrorIs(t, err, c)
	}
}
