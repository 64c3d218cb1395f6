package redis

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/fdengine/fullduplex/proto/resp"
)

// maxHandshakeReply bounds the bytes of one reply during a handshake.
const maxHandshakeReply = 1 << 20

// wire speaks request and reply on a connection before an engine owns it. The connection's deadline bounds it.
type wire struct {
	conn   net.Conn
	scan   *resp.Scanner
	buf    []byte // received and not consumed
	limit  int    // of the bytes of one frame
	secret string // never to appear in an error; empty: none
}

func newWire(conn net.Conn, secret string) *wire {
	return &wire{conn: conn, scan: resp.NewScanner(resp.Limits{}), limit: maxHandshakeReply, secret: secret}
}

// exchange sends all steps at once and checks their replies in order. The first error ends it at once, without
// waiting for the rest; except errFallback, which is returned when all replies are read.
func (w *wire) exchange(steps []step) error {
	var req []byte
	for _, s := range steps {
		var err error
		if req, err = resp.AppendCommand(req, s.args...); err != nil {
			return err
		}
	}
	if _, err := w.conn.Write(req); err != nil {
		return err
	}
	var fallback error
	for i, s := range steps {
		frame, err := w.reply()
		if err != nil {
			return fmt.Errorf("redis: handshake: reply %d of %d: %w", i+1, len(steps), err)
		}
		if fallback != nil {
			continue
		}
		if err := s.check(frame, w.refusal(frame)); err == errFallback {
			fallback = err
		} else if err != nil {
			return err
		}
	}
	return fallback
}

// refusal is the error that frame is, without the secret: servers quote what they do not understand.
func (w *wire) refusal(frame []byte) *ServerError {
	e := errorOf(frame)
	if e != nil && w.secret != "" {
		e.Code, e.Message = redacted(start(e.Code), w.secret), redacted(start(e.Message), w.secret)
	}
	return e
}

// quoted is how many bytes in a row make a quotation of a secret that is longer.
const quoted = 8

// start is what is kept of the words of a refusal: to look through a mebibyte of them would cost a second.
func start(text string) string { return text[:min(len(text), 4096)] }

// redacted is text without the secret and without longer pieces of it: servers cut what they quote short, and write
// a space for a line end.
func redacted(text, secret string) string {
	secret = oneLine.Replace(secret)
	least := min(quoted, len(secret))
	var b strings.Builder
	for len(text) > 0 {
		n := 0
		for n < len(text) && strings.Contains(secret, text[:n+1]) {
			n++
		}
		if n >= least {
			b.WriteString("***")
		} else {
			n = 1
			b.WriteByte(text[0])
		}
		text = text[n:]
	}
	return b.String()
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// reply returns the next frame that is not a push; it is valid for ever.
func (w *wire) reply() ([]byte, error) {
	for {
		frame, kind, err := w.frame()
		if err != nil || kind != resp.Push {
			return frame, err
		}
	}
}

// frame returns the next frame; it is valid for ever.
func (w *wire) frame() ([]byte, resp.Kind, error) {
	for {
		n, need, kind, err := w.scan.Next(w.buf)
		switch {
		case err != nil:
			return nil, 0, err
		case n > 0:
			frame := w.buf[:n:n]
			w.buf = w.buf[n:]
			return frame, kind, nil
		case need > w.limit:
			return nil, 0, fmt.Errorf("at least %d bytes, the limit is %d", need, w.limit)
		}
		// What was handed out lies before w.buf, in the same array or an older one: it is not written to.
		w.buf = slices.Grow(w.buf, 4096)
		n, err = w.conn.Read(w.buf[len(w.buf):cap(w.buf)])
		if n > 0 {
			w.buf = w.buf[:len(w.buf)+n]
			continue
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// errSurplus says that a server answered more than the handshake asked: which reply belongs to which command is not
// known then.
var errSurplus = errors.New("redis: handshake: the server says something that nobody asked for")

// rest returns what was received beyond the last reply.
func (w *wire) rest() []byte {
	if len(w.buf) == 0 {
		return nil
	}
	return w.buf
}

// pushes is rest when that may only be pushes, of which the last may be cut off. Anything else is an error.
func (w *wire) pushes() ([]byte, error) {
	for left := w.buf; len(left) > 0; {
		n, _, kind, err := w.scan.Next(left)
		switch t := resp.Type(left[0]); {
		case err != nil:
			return nil, err
		case n > 0 && kind != resp.Push, n == 0 && t != resp.TypePush && t != resp.TypeAttribute:
			return nil, errSurplus
		case n == 0:
			return w.rest(), nil
		}
		left = left[n:]
	}
	return w.rest(), nil
}
