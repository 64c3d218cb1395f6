package fdengine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/pool"
)

// wire is the client's end of a connection. It keeps every byte that was accepted: what left, and in which order,
// is known exactly, whatever the server saw of it.
type wire struct {
	*memnet.Conn
	exact    bool
	local    bool // it looks like one to this host
	conn     *pool.Conn
	loans    int  // world.mu
	poisoned bool // world.mu

	moved func() time.Duration // the time

	mu      sync.Mutex
	at      time.Duration // when a byte was last written or read
	out     []byte
	in      int // bytes read
	outAtIn int // len(out) when the first byte behind the handshake was read; 0 = none was
}

const handshakeReply = len("+PONG\r\n")

func (c *wire) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out, b[:n]...)
	c.at = c.moved()
	if err != nil && !c.exact {
		n = 0 // it cannot say
	}
	return n, err
}

// TryWrite is for the reader's turn to write.
func (c *wire) TryWrite(b []byte) (int, error) {
	n, err := c.Conn.TryWrite(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out, b[:n]...)
	c.at = c.moved()
	return n, err
}

func (c *wire) RemoteAddr() net.Addr {
	if c.local {
		return &net.TCPAddr{IP: net.IPv6loopback, Port: 1}
	}
	return c.Conn.RemoteAddr()
}

// silent is how long no byte has moved on c.
func (c *wire) silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved() - c.at
}

func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.at = c.moved()
	}
	if c.in += n; n > 0 && c.in > handshakeReply && c.outAtIn == 0 {
		c.outAtIn = len(c.out)
	}
	return n, err
}

// sent is one whole request on a wire.
type sent struct {
	verb, token string
	end         int // offset behind its last byte
}

// sent cuts what was accepted into requests; a half one at the end is left out.
func (c *wire) sent() (out []sent, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := 0
	header := func(kind byte) (int, bool) {
		end := bytes.IndexByte(c.out[at:], '\n')
		if end < 0 {
			return 0, false
		}
		line := c.out[at : at+end]
		n, perr := strconv.Atoi(string(bytes.TrimSuffix(line[1:], []byte("\r"))))
		if line[0] != kind || perr != nil {
			err = fmt.Errorf("at %d of the wire: %q", at, line)
			return 0, false
		}
		at += end + 1
		return n, true
	}
	for at < len(c.out) {
		words, ok := header('*')
		var args []string
		for i := 0; ok && i < words; i++ {
			var n int
			if n, ok = header('$'); !ok || at+n+2 > len(c.out) {
				ok = false
				break
			}
			args = append(args, string(c.out[at:at+n]))
			at += n + 2
		}
		if !ok {
			return out, err
		}
		s := sent{verb: args[0], end: at}
		if len(args) > 1 {
			s.token = args[1]
		}
		out = append(out, s)
	}
	return out, nil
}

// clean says what forbids lending c again. Under world.mu.
func (c *wire) clean(w *world) (bad []string) {
	if c.poisoned {
		bad = append(bad, "P7: a poisoned connection was Put")
	}
	if w.p.surplus {
		return bad
	}
	if n := c.Out().Buffered(); n > 0 && !w.quiet() {
		bad = append(bad, fmt.Sprintf("P7: a connection was Put with %d bytes that the server has not read", n))
	}
	return bad
}

// quiet says whether the program has commands without reply.
func (w *world) quiet() (quiet bool) {
	w.p.all(func(p *plan) { quiet = quiet || p.shape == noted })
	return quiet
}

// may panics or exits with a chance of percent.
func (w *world) may(percent int, who string) {
	if w.calm.Load() || percent == 0 {
		return
	}
	w.mu.Lock()
	n, exit := w.dice.IntN(100), w.dice.IntN(2) == 0
	w.mu.Unlock()
	switch {
	case n >= percent:
	case exit:
		runtime.Goexit()
	default:
		panic(who)
	}
}

// limit is a limiter that denies now and then, and counts its reports.
type limit struct{ w *world }

func (l limit) Allow() error {
	l.w.mu.Lock()
	n := l.w.dice.IntN(200)
	l.w.mu.Unlock()
	switch {
	case l.w.calm.Load() || n >= 2*l.w.p.opt.limiter:
		return nil
	case n == 0:
		panic("limiter")
	case n == 1:
		runtime.Goexit()
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.denied++
	return fmt.Errorf("limit reached")
}

func (l limit) ReportResult(error) { l.w.may(1, "report") }

// observe counts the samples, which must be as many as outcomes.
type observe struct{ w *world }

func (o observe) Observe(ev fdengine.Event) {
	if ev.Kind == fdengine.EventCompleted {
		o.w.mu.Lock()
		o.w.samples += len(ev.Samples)
		o.w.mu.Unlock()
	}
	if ev.Kind == fdengine.EventCompleted {
		return // it may be a caller's goroutine, whose end is his affair
	}
	o.w.may(1, "observer")
}

// witness is a log handler that keeps what the engine says about faults of its own.
type witness struct{ w *world }

func (witness) Enabled(context.Context, slog.Level) bool { return true }
func (h witness) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h witness) WithGroup(string) slog.Handler          { return h }
func (h witness) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "internal fault" {
		return nil
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		s := fmt.Sprint(a.Value.Any())
		if p, ok := a.Value.Any().(interface{ Unwrap() error }); ok {
			s += fmt.Sprintf(" %v", p)
		}
		h.w.faults = append(h.w.faults, s)
		return true
	})
	return nil
}
