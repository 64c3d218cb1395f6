package differential

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/stretchr/testify/require"
)

// theirJobs runs a program through go-beanstalk, one command at a time: the producer's on one connection, the
// consumer's on another.
type theirJobs struct {
	producer, consumer *beanstalk.Conn
	watched            *beanstalk.TubeSet
	results            []string
	held, gone         []uint64
}

func runTheirJobs(t *testing.T, addr string, p *jobProgram) []string {
	r := &theirJobs{producer: dialBeanstalk(t, addr), consumer: dialBeanstalk(t, addr), results: make([]string, p.size)}
	r.watched = beanstalk.NewTubeSet(r.consumer, "default")
	for i := range p.pieces {
		pc := &p.pieces[i]
		for j := range pc.ops {
			if o := &pc.ops[j]; pc.consume {
				r.results[pc.first+j] = r.consume(o)
			} else {
				r.results[pc.first+j] = r.produce(o)
			}
		}
	}
	return r.results
}

// dialBeanstalk makes a connection that is closed with the test.
func dialBeanstalk(t *testing.T, addr string) *beanstalk.Conn {
	c, err := beanstalk.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// theirError is the server's word for an error. What is no reply begins with a question mark.
func theirError(err error) string {
	for word, e := range map[string]error{
		"NOT_FOUND": beanstalk.ErrNotFound, "JOB_TOO_BIG": beanstalk.ErrJobTooBig, "TIMED_OUT": beanstalk.ErrTimeout,
	} {
		if errors.Is(err, e) {
			return word
		}
	}
	return "? " + err.Error()
}

func theirOK(err error) string {
	if err != nil {
		return theirError(err)
	}
	return "OK"
}

func theirFound(id uint64, body []byte, err error) string {
	if err != nil {
		return theirError(err)
	}
	return found(id, body, nil)
}

func theirStats(of verb, m map[string]string, err error) string {
	if err != nil {
		return theirError(err)
	}
	return renderStats(of, maps.All(m))
}

func (r *theirJobs) produce(o *jobOp) string {
	c, tube := r.producer, beanstalk.NewTube(r.producer, o.tube)
	switch o.verb {
	case put:
		id, err := tube.Put(o.body, o.pri, o.delay, o.ttr)
		if err != nil {
			return theirError(err)
		}
		return fmt.Sprint("INSERTED ", id, false)
	case peek:
		body, err := c.Peek(o.id)
		return theirFound(o.id, body, err)
	case peekReady:
		return theirFound(tube.PeekReady())
	case peekDelayed:
		return theirFound(tube.PeekDelayed())
	case peekBuried:
		return theirFound(tube.PeekBuried())
	case kick:
		n, err := tube.Kick(o.n)
		return fmt.Sprint("KICKED ", n, err)
	case kickJob:
		return theirOK(c.KickJob(o.id))
	case pause:
		return theirOK(tube.Pause(o.delay))
	case statsJob:
		m, err := c.StatsJob(o.id)
		return theirStats(o.verb, m, err)
	case statsTube:
		m, err := tube.Stats()
		return theirStats(o.verb, m, err)
	case stats:
		m, err := c.Stats()
		return theirStats(o.verb, m, err)
	}
	l, err := c.ListTubes()
	slices.Sort(l)
	return fmt.Sprint(l, err)
}

func (r *theirJobs) consume(o *jobOp) string {
	switch o.verb {
	case reserve:
		return r.reserved(r.watched.Reserve(0))
	case reserveJob:
		body, err := r.consumer.ReserveJob(o.id)
		return r.reserved(o.id, body, err)
	case deleteID:
		return theirOK(r.consumer.Delete(o.id))
	case watch: // sent with the next reserve
		r.watched.Name[o.tube] = true
		return watching(len(r.watched.Name), nil)
	case ignore:
		if len(r.watched.Name) == 1 && r.watched.Name[o.tube] {
			return "NOT_IGNORED" // as the server would say, who is not asked by this client
		}
		delete(r.watched.Name, o.tube)
		return watching(len(r.watched.Name), nil)
	}
	id, ok := pickFrom(o, &r.held, &r.gone)
	if !ok {
		return "nothing held"
	}
	switch o.verb {
	case deleteHeld:
		return theirOK(r.consumer.Delete(id))
	case release:
		return theirOK(r.consumer.Release(id, o.pri, o.delay))
	case bury:
		return theirOK(r.consumer.Bury(id, o.pri))
	}
	return theirOK(r.consumer.Touch(id))
}

func (r *theirJobs) reserved(id uint64, body []byte, err error) string {
	if err == nil {
		r.held = append(r.held, id)
	}
	return theirFound(id, body, err)
}
