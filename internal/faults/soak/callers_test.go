package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/redis"
)

// The callers here wait for each command before they send the next.

// patience makes the ctx of one call: one caller in twelve leaves early.
func (l *load) patience(rng *rand.Rand) (context.Context, context.CancelFunc) {
	if rng.IntN(12) > 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), time.Duration(rng.IntN(15_000))*time.Microsecond)
}

// counter is what one caller of INCR was told; the key is its own.
type counter struct {
	key       string
	ok, maybe int64
	last      int64 // the highest answer
	wrongs    []error
}

// judge compares with what the server has.
func (c *counter) judge(value int64) []error {
	if value < c.ok || value > c.ok+c.maybe || value < c.last {
		return append(c.wrongs, fmt.Errorf("%s is %d: %d were answered, the last with %d, and %d may have run",
			c.key, value, c.ok, c.last, c.maybe))
	}
	return c.wrongs
}

func (l *load) count(c *counter, rng *rand.Rand) {
	for l.running() {
		ctx, cancel := l.patience(rng)
		cmd := redis.Incr(c.key)
		err := l.redis.Do(ctx, cmd)
		cancel()
		switch w, wrong := whatTold(err); {
		case wrong != nil:
			c.wrongs = append(c.wrongs, wrong)
		case w == answered:
			c.ok++
			l.done[redisSite].Add(1)
			n, err := cmd.Int64()
			if err != nil || n <= c.last || n < c.ok || n > c.ok+c.maybe {
				c.wrongs = append(c.wrongs, fmt.Errorf("%s was answered %d, %v, after %d, with %d answered and %d that may have run",
					c.key, n, err, c.last, c.ok, c.maybe))
			}
			c.last = n
		case w == maybe:
			c.maybe++
		}
	}
}

// cell is what one caller of SET was told; the key is its own. The values are the numbers of the commands.
type cell struct {
	key    string
	told   []told
	wrongs []error
}

// fits reports whether value may be there: the last one answered, or a later one that may have run.
func (c *cell) fits(value int) bool {
	for i := len(c.told) - 1; i >= 0; i-- {
		if i == value && (c.told[i] == maybe || c.told[i] == answered) {
			return true
		}
		if c.told[i] == answered {
			return false
		}
	}
	return value < 0
}

// judge compares with what the server has; nil for nothing.
func (c *cell) judge(value any) []error {
	n := -1
	if text, ok := value.(string); ok {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			return append(c.wrongs, err)
		}
	}
	if !c.fits(n) {
		return append(c.wrongs, fmt.Errorf("%s is %d after %d commands, of which the last were told %v",
			c.key, n, len(c.told), c.told[max(0, len(c.told)-20):]))
	}
	return c.wrongs
}

// set writes values and reads each back.
func (l *load) set(c *cell, rng *rand.Rand) {
	for l.running() {
		ctx, cancel := l.patience(rng)
		err := l.redis.Do(ctx, redis.Set(c.key, strconv.Itoa(len(c.told))))
		cancel()
		w, wrong := whatTold(err)
		if c.told = append(c.told, w); w == answered {
			l.done[redisSite].Add(1)
		}
		get := redis.Get(c.key)
		if err := l.redis.Do(context.Background(), get); err == nil {
			n := -1
			if text, err := get.Text(); err == nil {
				n, wrong = atoi(text, wrong)
			}
			if !c.fits(n) {
				c.wrongs = append(c.wrongs, fmt.Errorf("%s was read as %d after %d commands, of which the last were told %v",
					c.key, n, len(c.told), c.told[max(0, len(c.told)-20):]))
			}
		}
		if wrong != nil {
			c.wrongs = append(c.wrongs, wrong)
		}
	}
}

func atoi(text string, wrong error) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -2, err
	}
	return n, wrong
}

// echo asks for tokens of its own back.
func (l *load) echo(name string, rng *rand.Rand) {
	for i := 0; l.running(); i++ {
		ctx, cancel := l.patience(rng)
		token := fmt.Sprintf("%s-%d", name, i)
		cmd := redis.Echo(token)
		err := l.redis.Do(ctx, cmd)
		cancel()
		if _, wrong := whatTold(err); wrong != nil {
			l.wrong(wrong)
		}
		if err == nil {
			l.done[redisSite].Add(1)
			if got, err := cmd.Text(); err != nil || got != token {
				l.wrong(fmt.Errorf("the echo of %s was %q, %v", token, got, err))
			}
		}
	}
}

// add appends entries that must not be there twice.
func (l *load) add(s *series, rng *rand.Rand) {
	for l.running() {
		ctx, cancel := l.patience(rng)
		i, token := s.take()
		cmd := redis.XAdd(s.name, "*", "t", token)
		err := l.redis.Do(ctx, cmd)
		cancel()
		l.added(s, i, cmd, err)
	}
}

// added notes the outcome of an XADD.
func (l *load) added(s *series, i int, cmd *redis.Cmd, err error) {
	id := ""
	if err == nil {
		id, err = cmd.Text()
	}
	if s.note(i, id, err) == answered {
		l.done[redisSite].Add(1)
	}
}

// put stores jobs; those of a series that allows it may be stored again.
func (l *load) put(s *series, rng *rand.Rand) {
	for l.running() {
		ctx, cancel := l.patience(rng)
		i, token := s.take()
		p := &beanstalkd.Put{Body: []byte(token), TTR: time.Hour, Replay: s.most > 1, Budget: s.most - 1}
		_, err := l.tube.Put(ctx, p)
		cancel()
		l.stored(s, i, p, err)
	}
}

// stored notes the outcome of a put.
func (l *load) stored(s *series, i int, p *beanstalkd.Put, err error) {
	id := ""
	if err == nil {
		id = strconv.FormatUint(p.ID, 10)
	}
	if s.note(i, id, err) == answered {
		l.done[tubeSite].Add(1)
	}
}

// walk goes through a Stream one command at a time, and leaves some of them.
func (l *load) walk(s *series, rng *rand.Rand) {
	st := l.redis.Stream()
	for l.running() {
		ctx, cancel := l.patience(rng)
		i, token := s.take()
		cmd := redis.XAdd(s.name, "*", "t", token)
		err := st.Do(ctx, cmd)
		cancel()
		l.added(s, i, cmd, err)
		if err != nil && st.Flush(context.Background()) != nil {
			l.renew(st, s, i+1)
		}
	}
}

// renew resets a broken Stream before its command i.
func (l *load) renew(st *fdengine.Stream, s *series, i int) {
	if err := st.Reset(); err != nil {
		l.wrong(err)
	}
	s.epochs = append(s.epochs, i)
}
