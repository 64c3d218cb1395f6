package differential

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

// theirs runs a program through go-redis, one command at a time on one connection.
type theirs struct {
	conn    *goredis.Conn
	results []string
}

// runTheirs runs the programs one after another and returns the outcomes of each.
func runTheirs(t *testing.T, addr string, version int, programs []*program) [][]string {
	c := goredis.NewClient(&goredis.Options{
		Addr: addr, Protocol: version, PoolSize: 1, MaxRetries: -1, ReadTimeout: patience, WriteTimeout: patience,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() { require.NoError(t, c.Close()) }()
	conn := c.Conn()
	defer func() { require.NoError(t, conn.Close()) }()
	results := make([][]string, len(programs))
	for i, p := range programs {
		r := &theirs{conn: conn, results: make([]string, p.size)}
		for j := range p.pieces {
			r.piece(t.Context(), &p.pieces[j])
		}
		results[i] = r.results
	}
	return results
}

// patience bounds the wait for a reply on a busy machine.
const patience = time.Minute

func (r *theirs) piece(ctx context.Context, pc *piece) {
	switch pc.manner {
	case tx:
		r.tx(ctx, pc)
	case script:
		for j := range pc.ops {
			source, keys, args := evalParts(&pc.ops[j])
			v, err := goredis.NewScript(source).Run(ctx, r.conn, keys, args...).Result()
			r.results[pc.first+j] = theirAnswer(&pc.ops[j], v, err)
		}
	default:
		for j := range pc.ops {
			r.results[pc.first+j] = r.one(ctx, &pc.ops[j])
		}
	}
}

func (r *theirs) one(ctx context.Context, o *op) string {
	if o.raw {
		c := goredis.NewRawCmd(ctx, o.args...)
		if err := r.conn.Process(ctx, c); err != nil {
			return "? " + err.Error()
		}
		return quote(string(c.Val()))
	}
	v, err := r.ask(ctx, o.args...)
	return theirAnswer(o, v, err)
}

func (r *theirs) ask(ctx context.Context, args ...any) (any, error) {
	c := goredis.NewCmd(ctx, args...)
	_ = r.conn.Process(ctx, c) // the error of the command
	return c.Result()
}

// theirAnswer is the outcome of one command as text. What is no reply begins with a question mark.
func theirAnswer(o *op, v any, err error) string {
	var reply goredis.Error
	switch {
	case errors.Is(err, goredis.Nil):
		v = nil
	case errors.As(err, &reply):
		v = failure(reply.Error())
	case err != nil:
		return "? " + err.Error()
	}
	return brief(render(o.even(ofTheirs(v))))
}

func (r *theirs) tx(ctx context.Context, pc *piece) {
	var refused error
	note := func(err error) {
		if err != nil && refused == nil {
			refused = err
		}
	}
	_, err := r.ask(ctx, "MULTI")
	note(err)
	for j := range pc.ops {
		_, err := r.ask(ctx, pc.ops[j].args...)
		note(err)
	}
	v, err := r.ask(ctx, "EXEC")
	note(err)
	list, _ := v.([]any)
	for j := range pc.ops {
		switch out := &r.results[pc.first+j]; {
		case refused != nil:
			*out = discarded(refused.Error())
		case j >= len(list):
			*out = "? no reply in that of EXEC"
		default:
			*out = brief(render(pc.ops[j].even(ofTheirs(list[j]))))
		}
	}
}
