package beanstalk

import (
	"bytes"
	"math"
)

// Reply is one reply taken apart. Name and Body point into what was parsed.
type Reply struct {
	Word      Word
	HasNumber bool   // BURIED and KICKED come with and without
	Number    uint64 // an id or a count
	Name      []byte // of USING
	Body      []byte // of RESERVED, FOUND and OK
}

// Parse takes the reply at the start of buf apart; n is its length. buf must hold all of it, as a Scanner has
// found it; the error is a *ProtocolError. It allocates nothing unless it fails.
func Parse(buf []byte) (r Reply, n int, err error) {
	end := bytes.IndexByte(buf, '\n')
	if end < 0 {
		return Reply{}, 0, fault(buf, "line is not whole")
	}
	r, bodySize, reason := parseLine(buf[:end+1])
	if reason != "" {
		return Reply{}, 0, fault(buf[:end+1], reason)
	}
	if n = end + 1; bodySize < 0 {
		return r, n, nil
	}
	if len(buf)-n-2 < bodySize {
		return Reply{}, 0, fault(buf[:n], "body is not whole")
	}
	r.Body = buf[n : n+bodySize : n+bodySize]
	n += bodySize + 2
	if buf[n-2] != '\r' || buf[n-1] != '\n' {
		return Reply{}, 0, fault(buf[:end+1], reasonBody)
	}
	return r, n, nil
}

// Begins reads the line at the start of buf, whether or not the body that it announces is there. ok: the line is whole,
// and one that a reply begins with. The Reply has no Body.
func Begins(buf []byte) (r Reply, ok bool) {
	end := bytes.IndexByte(buf, '\n')
	if end < 0 {
		return Reply{}, false
	}
	r, _, reason := parseLine(buf[:end+1])
	return r, reason == ""
}

const reasonBody = "body does not end with a line end where its length says"

// parseLine takes a line with its end apart. bodySize is -1 when no body follows.
func parseLine(line []byte) (r Reply, bodySize int, reason string) {
	end := len(line) - 2
	if end < 0 || line[end] != '\r' {
		return r, 0, "line feed without carriage return"
	}
	word, rest, more := bytes.Cut(line[:end], []byte{' '})
	r.Word = WordOf(word)
	if r.Word == Unknown {
		return r, 0, "unknown word"
	}
	ok := true
	bodySize = -1
	switch f := shapes[r.Word].form; f {
	case bare:
		ok = !more
	case number, mayNumber:
		if f == number || more {
			r.HasNumber = true
			r.Number, ok = parseNumber(rest)
		}
	case name:
		r.Name = rest
		ok = validName(rest)
	case size:
		bodySize, ok = parseSize(rest)
	case numberSize:
		id, bytesText, _ := bytes.Cut(rest, []byte{' '})
		r.HasNumber = true
		if r.Number, ok = parseNumber(id); ok {
			bodySize, ok = parseSize(bytesText)
		}
	}
	if !ok {
		return r, 0, "does not go with its word"
	}
	return r, bodySize, ""
}

// parseNumber reads decimal digits and nothing else.
func parseNumber(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// parseSize is parseNumber for what must fit an int, with room for a line.
func parseSize(b []byte) (int, bool) {
	n, ok := parseNumber(b)
	if !ok || n > math.MaxInt/2 {
		return 0, false
	}
	return int(n), true
}
