package beanstalkd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// handshake sets a session up: which tube is used, which are watched, and list-tube-used as proof that the server
// serves and that the first of these was done. All of it goes out at once and every reply is checked.
type handshake struct {
	tube    string
	watched func() []string
}

// step is one command of a handshake and what it is to be answered with.
type step struct {
	name string
	want beanstalk.Word
	tube string // of USING; empty: any
}

// run implements pool.Options.Handshake. A refusal that the same words would get again is marked pool.Permanent.
func (h handshake) run(_ context.Context, d *pool.Dial) error {
	req, steps, err := h.script()
	if err != nil {
		return pool.Permanent(err)
	}
	if _, err := d.Conn.Write(req); err != nil {
		return err
	}
	var buf []byte
	scan := beanstalk.NewScanner(beanstalk.Limits{Body: 1}) // none of the replies has one
	for _, s := range steps {
		var n int
		if buf, n, err = receive(d.Conn, scan, buf); err != nil {
			return fmt.Errorf("beanstalkd: handshake: %s: %w", s.name, err)
		}
		if err := s.check(buf[:n]); err != nil {
			return err
		}
		buf = buf[n:]
	}
	if len(buf) > 0 {
		return errSurplus
	}
	return nil
}

// errSurplus says that a server answered more than the handshake asked: which reply belongs to which command is not
// known then.
var errSurplus = errors.New("beanstalkd: handshake: the server says something that nobody asked for")

// script makes the request and what its replies must be.
func (h handshake) script() (req []byte, steps []step, err error) {
	add := func(name string, want beanstalk.Word, f func([]byte, string) ([]byte, error), tube string) {
		if err == nil {
			req, err = f(req, tube)
			steps = append(steps, step{name: name, want: want})
		}
	}
	add("use", beanstalk.Using, beanstalk.AppendUse, h.tube)
	if h.watched != nil {
		if tubes := h.watched(); len(tubes) > 0 {
			for _, t := range tubes {
				add("watch", beanstalk.Watching, beanstalk.AppendWatch, t)
			}
			if !slices.Contains(tubes, "default") {
				add("ignore", beanstalk.Watching, beanstalk.AppendIgnore, "default")
			}
		}
	}
	req = beanstalk.AppendListTubeUsed(req)
	return req, append(steps, step{"list-tube-used", beanstalk.Using, h.tube}), err
}

// receive reads until buf begins with a whole reply of n bytes.
func receive(c *pool.Conn, scan *beanstalk.Scanner, buf []byte) (all []byte, n int, err error) {
	for {
		n, _, _, err := scan.Next(buf)
		if err != nil || n > 0 {
			return buf, n, err
		}
		chunk := make([]byte, 4096)
		m, err := c.Read(chunk)
		if m > 0 {
			buf = append(buf[:len(buf):len(buf)], chunk[:m]...)
		} else if err != nil {
			return buf, 0, err
		}
	}
}

// check says why frame is not what the step is to be answered with.
func (s step) check(frame []byte) error {
	r, _, err := beanstalk.Parse(frame)
	switch {
	case err != nil:
		return err
	case r.Word == s.want && (s.tube == "" || string(r.Name) == s.tube):
		return nil
	case r.Word.Refusal():
		err := fmt.Errorf("beanstalkd: handshake: %s: %w", s.name, refused(r.Word))
		if r.Word == beanstalk.BadFormat || r.Word == beanstalk.UnknownCommand {
			return pool.Permanent(err)
		}
		return err
	}
	return fmt.Errorf("beanstalkd: handshake: %w", &UnexpectedError{Command: s.name, Reply: r.Word.String()})
}
