package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/resp"
)

// Session is what the handshake learns about its connection and leaves in pool.Conn.Session. It is what a later
// handshake needs to fence the connection.
type Session struct {
	ID   int64  // CLIENT ID
	Addr string // the client's address as the server sees it; empty when the server did not say
}

// handshake sets a session up: who we are, which database, what is needed to fence it, the fences that are due,
// and a PING as proof that the server serves. All of it goes out at once and every reply is checked; a server
// that does not know HELLO costs a second round trip.
type handshake struct {
	protocol int
	db       int
	name     string
}

// step is one command of a handshake with the check of its reply. The check gets nil for a reply that is not
// an error.
type step struct {
	args  []any
	check func(frame []byte, refused *ServerError) error
}

// errFallback says that the server does not know HELLO or the version asked for.
var errFallback = errors.New("redis: HELLO not supported")

// run implements pool.Options.Handshake. Errors that dialing again cannot heal are marked pool.Permanent. No
// error carries the password, although servers quote what they do not understand.
func (h handshake) run(_ context.Context, d *pool.Dial) error {
	w := newWire(d.Conn, d.Password)
	err := errFallback
	if h.protocol != 2 {
		err = w.exchange(append([]step{h.hello(d)}, h.session(d)...))
	}
	if errors.Is(err, errFallback) {
		err = w.exchange(append(h.legacy(d), h.session(d)...))
	}
	if err != nil {
		return err
	}
	d.Conn.Unread, err = w.pushes()
	return err
}

// hello is HELLO 3 with user and name.
func (h handshake) hello(d *pool.Dial) step {
	args := []any{"HELLO", 3}
	if d.Username != "" || d.Password != "" {
		args = append(args, "AUTH", cmpOr(d.Username, "default"), d.Password)
	}
	if h.name != "" {
		args = append(args, "SETNAME", h.name)
	}
	return step{args, func(frame []byte, refused *ServerError) error {
		if refused == nil {
			return nil
		}
		if refused.Code == "NOPROTO" || refused.Code == "ERR" && hasPrefixFold(refused.Message, "unknown command") {
			return errFallback
		}
		return fatal("HELLO", refused)
	}}
}

// legacy does what hello does, without it.
func (h handshake) legacy(d *pool.Dial) (steps []step) {
	switch {
	case d.Username != "":
		steps = append(steps, must("AUTH", d.Username, d.Password))
	case d.Password != "":
		steps = append(steps, must("AUTH", d.Password))
	}
	if h.name != "" {
		steps = append(steps, step{[]any{"CLIENT", "SETNAME", h.name}, optional("CLIENT SETNAME")})
	}
	return steps
}

// session is what follows in either way.
func (h handshake) session(d *pool.Dial) (steps []step) {
	if h.db != 0 {
		steps = append(steps, must("SELECT", h.db))
	}
	s := new(Session)
	steps = append(steps, step{[]any{"CLIENT", "ID"}, func(frame []byte, refused *ServerError) error {
		r := resp.NewReader(frame)
		if id, err := r.Int(); err == nil {
			s.ID = id
			d.Conn.Session = s
		}
		return optional("CLIENT ID")(frame, refused)
	}}, step{[]any{"CLIENT", "INFO"}, func(frame []byte, refused *ServerError) error {
		s.Addr = infoAddr(frame)
		return optional("CLIENT INFO")(frame, refused)
	}})
	for _, f := range d.Fence {
		if old, ok := f.(*Session); ok {
			steps = append(steps, fence(old))
		}
	}
	return append(steps, step{[]any{"PING"}, func(frame []byte, refused *ServerError) error {
		r := resp.NewReader(frame)
		if s, err := r.Text(); refused == nil && (err != nil || s != "PONG") {
			return errors.New("redis: PING was answered with something else than PONG")
		}
		if refused != nil && refused.Code == "NOPERM" {
			return nil // the server answers, and a user may be allowed nothing but the commands of its job
		}
		return fatal("PING", refused)
	}})
}

// fence kills an old connection of ours, so that the server runs nothing more of what it received there. The
// address keeps a restarted server, which counts ids from 1 again, from killing a stranger. That the connection
// is gone already is fine; so is a missing right, which leaves late execution possible.
func fence(old *Session) step {
	args := []any{"CLIENT", "KILL", "ID", old.ID}
	if old.Addr != "" {
		args = append(args, "ADDR", old.Addr)
	}
	return step{args, func(frame []byte, refused *ServerError) error {
		if refused != nil && hasPrefixFold(refused.Message, "no such client") {
			return nil
		}
		return optional("CLIENT KILL")(frame, refused)
	}}
}

// infoAddr finds addr=... in the reply of CLIENT INFO.
func infoAddr(frame []byte) string {
	r := resp.NewReader(frame)
	text, err := r.Text()
	if err != nil {
		return ""
	}
	for field := range strings.FieldsSeq(text) {
		if addr, ok := strings.CutPrefix(field, "addr="); ok {
			return addr
		}
	}
	return ""
}

// must is a step whose refusal ends the dial.
func must(name string, args ...any) step {
	return step{append([]any{name}, args...), func(_ []byte, refused *ServerError) error { return fatal(name, refused) }}
}

// optional tolerates that the server does not know the command or that the user may not run it.
func optional(what string) func([]byte, *ServerError) error {
	return func(_ []byte, refused *ServerError) error {
		if refused == nil || refused.Code == "NOPERM" ||
			refused.Code == "ERR" && (hasPrefixFold(refused.Message, "unknown") || hasPrefixFold(refused.Message, "syntax error")) {
			return nil
		}
		return fatal(what, refused)
	}
}

// fatal makes the dial's error of a refusal; nil for none.
func fatal(what string, refused *ServerError) error {
	if refused == nil {
		return nil
	}
	err := fmt.Errorf("redis: handshake: %s: %w", what, refused)
	if permanent(what, refused) {
		return pool.Permanent(err)
	}
	return err
}

// permanent says whether dialing again with the same words gets the same answer.
func permanent(what string, e *ServerError) bool {
	switch e.Code {
	case "WRONGPASS", "NOPERM", "NOAUTH":
		return true
	case "ERR":
		for _, text := range []string{
			"invalid password", "Client sent AUTH, but no password", "AUTH <password> called without any password",
			"DB index is out of range", "invalid DB index", "SELECT is not allowed in cluster mode", "value is not an integer",
			"wrong number of arguments",
		} {
			if hasPrefixFold(e.Message, text) {
				return true
			}
		}
		return what == "CLIENT SETNAME"
	}
	return false
}
