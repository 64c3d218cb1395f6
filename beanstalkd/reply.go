package beanstalkd

import (
	"fmt"
	"strconv"

	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// The methods here read the reply of a completed command. Each returns ErrNoReply when there is none, and the error
// of the reply when it is one.

// Err is the error reply, or ErrNoReply; nil when the command was carried out.
func (c *Cmd) Err() error {
	if !c.answered {
		return ErrNoReply
	}
	return c.err
}

// Replayed says that a Delete found nothing, but an earlier send of it may have deleted the job.
func (c *Cmd) Replayed() bool { return c.replayed }

// Job is the id and body of a job that was peeked at or reserved. The body is valid until the Cmd is sent again.
func (c *Cmd) Job() (id uint64, body []byte, err error) {
	if err := c.Err(); err != nil {
		return 0, nil, err
	}
	return c.number, c.text, nil
}

// Count is the number of jobs kicked, or of tubes watched.
func (c *Cmd) Count() (int, error) { return int(c.number), c.Err() }

// Text is the reply's body or name as it came.
func (c *Cmd) Text() (string, error) { return string(c.text), c.Err() }

// Stats is the reply to one of the statistics commands.
func (c *Cmd) Stats() (Stats, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	return beanstalk.ParseDict(c.text)
}

// List is the reply to one of the commands that list tubes.
func (c *Cmd) List() ([]string, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	return beanstalk.ParseList(c.text)
}

// Stats are names and values, in the server's order. Values are text; times are seconds.
type Stats []beanstalk.Pair

// Text is the value of name; false when there is none.
func (s Stats) Text(name string) (string, bool) {
	for _, p := range s {
		if p.Key == name {
			return p.Value, true
		}
	}
	return "", false
}

// Int is the value of name as a number.
func (s Stats) Int(name string) (int64, error) {
	v, ok := s.Text(name)
	if !ok {
		return 0, fmt.Errorf("beanstalkd: statistics have no %s", name)
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("beanstalkd: statistics: %s is %q, no number", name, v)
	}
	return n, nil
}
