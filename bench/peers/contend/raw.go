package contend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// raw writes requests that were encoded before and reads as many replies: no client can be cheaper on that
// connection at that depth. It stands for all callers at once.
type raw struct {
	conn net.Conn
	t    Target
}

func openRaw(ctx context.Context, t Target) (Client, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, err
	}
	return &raw{c, t}, nil
}

// Caller is All of one command.
func (r *raw) Caller(int) Caller { return r.All(1) }

func (r *raw) Close() error { return r.conn.Close() }

// All implements Bulk.
func (r *raw) All(depth int) Caller {
	reply := "+OK\r\n"
	if r.t.Get {
		reply = fmt.Sprintf("$%d\r\n%s\r\n", len(r.t.value()), r.t.value())
	}
	b := &rawBulk{conn: r.conn, want: bytes.Repeat([]byte(reply), depth), depth: depth}
	for i := range depth {
		b.req = append(b.req, encodeCall(i, r.t)...)
	}
	b.buf = make([]byte, len(b.want))
	return b
}

type rawBulk struct {
	conn           net.Conn
	req, want, buf []byte
	depth          int
}

// inSockets is how many requests are surely answered before their sender must read: the replies fit in the buffers
// between.
const inSockets = 8192

func (b *rawBulk) Call() error {
	if b.depth <= inSockets && len(b.want) <= inSockets*len("+OK\r\n") {
		if _, err := b.conn.Write(b.req); err != nil {
			return err
		}
		return b.read()
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := b.conn.Write(b.req)
		wrote <- err
	}()
	err := b.read()
	if err != nil {
		_ = b.conn.Close() // ends the write
	}
	return errors.Join(err, <-wrote)
}

func (b *rawBulk) read() error {
	for have := 0; have < len(b.want); {
		n, err := b.conn.Read(b.buf[have:])
		if err != nil {
			return err
		}
		if !bytes.Equal(b.buf[have:have+n], b.want[have:have+n]) {
			return wrong("raw limit", string(b.buf[have:have+n]))
		}
		have += n
	}
	return nil
}

// encodeCall is the i-th request on the wire.
func encodeCall(i int, t Target) []byte {
	words := []string{"SET", key(i), t.value()}
	if t.Get {
		words = []string{"GET", key(i)}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return []byte(b.String())
}
