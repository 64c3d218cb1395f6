package scripted

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Counting is a TCP server for benchmarks: it counts whole requests, answers +OK to each, all answers of a read
// in one write, and does nothing else. It trusts its client: a stream that is not arrays of bulk strings ends the
// connection.
type Counting struct {
	l      net.Listener
	wg     sync.WaitGroup
	frames atomic.Int64
	bytes  atomic.Int64
	reads  atomic.Int64
	mu     struct {
		sync.Mutex
		closed bool
		conns  map[net.Conn]bool
	}
}

const countingReply = "+OK\r\n"

// NewCounting listens on addr of network ("tcp" and "127.0.0.1:0", or "unix" and a path).
func NewCounting(network, addr string) (*Counting, error) {
	l, err := net.Listen(network, addr)
	if err != nil {
		return nil, err
	}
	s := &Counting{l: l}
	s.mu.conns = map[net.Conn]bool{}
	s.wg.Go(s.accept)
	return s, nil
}

// Addr is where it listens.
func (s *Counting) Addr() string { return s.l.Addr().String() }

// Frames is how many whole requests have arrived.
func (s *Counting) Frames() int64 { return s.frames.Load() }

// Bytes is how many bytes have arrived.
func (s *Counting) Bytes() int64 { return s.bytes.Load() }

// Reads is how many reads returned bytes: Frames / Reads is how well the client batches.
func (s *Counting) Reads() int64 { return s.reads.Load() }

// Close ends all connections and waits for the goroutines.
func (s *Counting) Close() error {
	err := s.l.Close()
	s.mu.Lock()
	s.mu.closed = true
	conns := s.mu.conns
	s.mu.conns = nil
	s.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Counting) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		closed := s.mu.closed
		if !closed {
			s.mu.conns[c] = true
		}
		s.mu.Unlock()
		if closed {
			_ = c.Close()
			return
		}
		s.wg.Go(func() { s.serve(c) })
	}
}

func (s *Counting) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.mu.conns, c)
		s.mu.Unlock()
	}()
	var k counter
	buf := make([]byte, 256<<10)
	replies := bytes.Repeat([]byte(countingReply), 4096)
	for held := 0; ; {
		n, err := c.Read(buf[held:])
		if err != nil {
			return
		}
		s.reads.Add(1)
		s.bytes.Add(int64(n))
		used, frames, ok := k.count(buf[:held+n])
		if !ok {
			return
		}
		held = copy(buf, buf[used:held+n])
		s.frames.Add(int64(frames))
		for left := frames * len(countingReply); left > 0; {
			part := min(left, len(replies))
			if _, err := c.Write(replies[:part]); err != nil {
				return
			}
			left -= part
		}
	}
}

// counter is where the stream stands: how many words and how many payload bytes the current request still has.
type counter struct{ words, skip int }

// count consumes all of b but an incomplete header, and says how many requests ended in it.
func (k *counter) count(b []byte) (used, frames int, ok bool) {
	for used < len(b) {
		if k.skip > 0 {
			n := min(k.skip, len(b)-used)
			used += n
			if k.skip -= n; k.skip > 0 {
				break
			}
			if k.words == 0 {
				frames++
			}
			continue
		}
		want := byte('*')
		if k.words > 0 {
			want = '$'
		}
		if b[used] != want {
			return 0, 0, false
		}
		end := bytes.IndexByte(b[used:min(len(b), used+24)], '\n')
		if end < 0 {
			return used, frames, len(b)-used < 24
		}
		n, good := digits(b[used+1 : used+end])
		if !good || want == '*' && n == 0 {
			return 0, 0, false
		}
		used += end + 1
		if want == '*' {
			k.words = n
			continue
		}
		k.words--
		k.skip = n + 2
	}
	return used, frames, true
}

// digits reads a decimal count followed by '\r'.
func digits(b []byte) (n int, ok bool) {
	if len(b) < 2 || b[len(b)-1] != '\r' {
		return 0, false
	}
	if len(b) > 12 {
		return 0, false
	}
	for _, d := range b[:len(b)-1] {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}
