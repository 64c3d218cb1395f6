package nullserver

import "bytes"

// parser finds whole requests. It remembers the shape of the last counted one, the bytes up to its first argument
// and those between the arguments: a request of that shape is recognised by two comparisons.
type parser struct {
	head, mid []byte // "*3\r\n$3\r\nSET\r\n$16\r\n" and "\r\n$64\r\n"
	midAt     int
	size      int // of a whole request of that shape; 0 = none yet
	words     [][]byte
	starts    []int // of the words
}

// next returns the length of the request at the start of b: 0 when it is not whole, -1 when b is no RESP array of
// bulk strings. words is nil for a request that is only to be counted, else its words, valid until the next call.
func (p *parser) next(b []byte) (size int, words [][]byte) {
	if n := p.size; n > 0 && len(b) >= n && bytes.HasPrefix(b, p.head) &&
		bytes.Equal(b[p.midAt:p.midAt+len(p.mid)], p.mid) {
		return n, nil
	}
	return p.slow(b)
}

func (p *parser) slow(b []byte) (int, [][]byte) {
	count, at := number(b, '*')
	if at <= 0 {
		return at, nil
	}
	if count < 1 {
		return -1, nil
	}
	p.words, p.starts = p.words[:0], p.starts[:0]
	for range count {
		n, used := number(b[at:], '$')
		if used <= 0 {
			return used, nil
		}
		at += used
		if at+n+2 > len(b) {
			return 0, nil
		}
		p.words, p.starts = append(p.words, b[at:at+n]), append(p.starts, at)
		at += n + 2
	}
	if special(p.words[0]) {
		return at, p.words
	}
	if count == 3 {
		p.learn(b[:at])
	}
	return at, nil
}

// learn remembers the shape of a request of three words.
func (p *parser) learn(b []byte) {
	p.midAt = p.starts[1] + len(p.words[1])
	p.head = append(p.head[:0], b[:p.starts[1]]...)
	p.mid = append(p.mid[:0], b[p.midAt:p.starts[2]]...)
	p.size = len(b)
}

// number reads a line such as "$64\r\n" and returns its number and length; 0 when it is not whole, -1 when it is
// something else.
func number(b []byte, mark byte) (n, used int) {
	if len(b) == 0 {
		return 0, 0
	}
	if b[0] != mark {
		return 0, -1
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case '0' <= c && c <= '9' && i < 12:
			n = n*10 + int(c-'0')
		case c == '\r' && i > 1:
			if i+1 == len(b) {
				return 0, 0
			}
			return n, i + 2
		default:
			return 0, -1
		}
	}
	return 0, 0
}

// special says whether a command gets more than +OK.
func special(name []byte) bool {
	switch len(name) {
	case 3:
		return bytes.EqualFold(name, []byte("GET"))
	case 4:
		return bytes.EqualFold(name, []byte("PING"))
	case 5:
		return bytes.EqualFold(name, []byte("HELLO"))
	case 6:
		return bytes.EqualFold(name, []byte("CLIENT")) || bytes.EqualFold(name, []byte(holdCommand))
	case 7:
		return bytes.EqualFold(name, []byte(valueCommand))
	case 9:
		return bytes.EqualFold(name, []byte(countedCommand))
	}
	return false
}
