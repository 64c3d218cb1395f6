package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Request is one whole request of a client.
type Request struct {
	Args      []string
	Handshake bool      // its verb is one of the handshake's
	Seq       int       // position on its connection, from 0, handshake included
	Arrival   uint64    // position over all connections, from 1
	At        time.Time // when its last byte was read
	Size      int       // bytes on the wire
	Attempt   int       // how many times the server handled its token, this time included; 0 in logs
}

// Verb is the first word in upper case.
func (r Request) Verb() string {
	if len(r.Args) == 0 {
		return ""
	}
	return strings.ToUpper(r.Args[0])
}

// Token is the second word, or empty.
func (r Request) Token() string {
	if len(r.Args) < 2 {
		return ""
	}
	return r.Args[1]
}

// limits of what a test may send in one request.
const (
	maxWords = 1 << 20
	maxWord  = 1 << 30
)

var errProtocol = errors.New("Protocol error")

// requests cuts a byte stream into requests. It remembers what it has read of the current one, so that a large
// word arriving in pieces is not looked at again.
type requests struct {
	buf  []byte
	pos  int // in buf, behind what was parsed
	left int // words still to come; 0 = at a boundary
	word int // length of the word whose header was read; -1 = none
	size int // bytes of the current request so far
	args []string
}

func (p *requests) feed(b []byte) {
	if p.pos > 0 {
		p.buf = p.buf[:copy(p.buf, p.buf[p.pos:])]
		p.pos = 0
	}
	p.buf = append(p.buf, b...)
}

// next returns the next whole request; ok is false when it is incomplete.
func (p *requests) next() (args []string, size int, ok bool, err error) {
	for {
		if p.left == 0 {
			n, found, err := p.header('*', maxWords)
			if err != nil || !found {
				return nil, 0, false, err
			}
			if n == 0 {
				p.size = 0
				continue
			}
			p.left, p.word, p.args = n, -1, make([]string, 0, min(n, 64))
		}
		if p.word < 0 {
			n, found, err := p.header('$', maxWord)
			if err != nil || !found {
				return nil, 0, false, err
			}
			p.word = n
		}
		rest := p.buf[p.pos:]
		if len(rest) < p.word+2 {
			return nil, 0, false, nil
		}
		if rest[p.word] != '\r' || rest[p.word+1] != '\n' {
			return nil, 0, false, fmt.Errorf("%w: word not ended by CRLF", errProtocol)
		}
		p.args = append(p.args, string(rest[:p.word]))
		p.advance(p.word + 2)
		p.word = -1
		if p.left--; p.left == 0 {
			args, size = p.args, p.size
			p.args, p.size = nil, 0
			return args, size, true, nil
		}
	}
}

func (p *requests) advance(n int) {
	p.pos += n
	p.size += n
}

// header reads a line of a type byte and a count.
func (p *requests) header(kind byte, limit int) (n int, found bool, err error) {
	rest := p.buf[p.pos:]
	if len(rest) > 0 && rest[0] != kind {
		return 0, false, fmt.Errorf("%w: expected '%c', got %q", errProtocol, kind, rest[0])
	}
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		if len(rest) > 32 {
			return 0, false, fmt.Errorf("%w: header without end", errProtocol)
		}
		return 0, false, nil
	}
	line := bytes.TrimSuffix(rest[1:end], []byte{'\r'})
	n, err = strconv.Atoi(string(line))
	if err != nil || n < 0 || n > limit {
		return 0, false, fmt.Errorf("%w: bad count %q", errProtocol, line)
	}
	p.advance(end + 1)
	return n, true, nil
}

// AppendRequest appends words as an array of bulk strings.
func AppendRequest(dst []byte, words ...string) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(words)), 10)
	dst = append(dst, "\r\n"...)
	for _, w := range words {
		dst = AppendBulk(dst, w)
	}
	return dst
}

// AppendBulk appends text as a bulk string.
func AppendBulk(dst []byte, text string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(text)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, text...)
	return append(dst, "\r\n"...)
}

// millis reads a count of milliseconds; zero when it is none.
func millis(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
