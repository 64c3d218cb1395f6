package testserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// answerTimeout bounds one call of a Witness.
const answerTimeout = 20 * time.Second

// maxAnswer bounds one bulk string or one array that a Witness accepts.
const maxAnswer = 1 << 30

// Error is an error reply of the server.
type Error string

func (e Error) Error() string { return string(e) }

// Witness is a connection that sends one command and waits for its answer, and no more than that. It never dials
// again. One goroutine at a time.
type Witness struct {
	c net.Conn
	r *bufio.Reader
}

// NewWitness dials addr; a nil config means no TLS.
func NewWitness(ctx context.Context, network, addr string, config *tls.Config) (*Witness, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if config != nil {
		c = tls.Client(c, config)
	}
	return &Witness{c: c, r: bufio.NewReader(c)}, nil
}

// Close closes the connection.
func (w *Witness) Close() error { return w.c.Close() }

// Do sends a command and returns its answer: string, int64, nil, or []any of those and of Error. An error reply
// is returned as err, an Error; any other err means that the connection failed.
func (w *Witness) Do(args ...string) (any, error) {
	if err := w.c.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	req := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		req = fmt.Appendf(req, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := w.c.Write(req); err != nil {
		return nil, err
	}
	v, err := w.read()
	if e, ok := v.(Error); ok && err == nil {
		return nil, e
	}
	return v, err
}

func (w *Witness) read() (any, error) {
	line, err := w.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, errors.New("testserver: empty line in an answer")
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return text, nil
	case '-':
		return Error(text), nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '$', '*':
	default:
		return nil, fmt.Errorf("testserver: answer of type %q", kind)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > maxAnswer {
		return nil, fmt.Errorf("testserver: answer of length %q", text)
	}
	if n < 0 {
		return nil, nil
	}
	if kind == '$' {
		b := make([]byte, n+2)
		if _, err := io.ReadFull(w.r, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	}
	list := make([]any, 0, min(n, 1024))
	for range n {
		v, err := w.read()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// text formats an answer for comparison: numbers in decimal, null as the empty string, arrays as fmt does.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return fmt.Sprint(v)
}
