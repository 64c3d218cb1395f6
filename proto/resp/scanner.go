package resp

import "bytes"

// minValue is the size of the smallest value, such as the null of version 3: a type byte and a line end.
const minValue = 3

// level is an aggregate that is still open.
type level struct {
	left int
	attr bool // an attribute: when it is complete, the value it speaks of is still to come
}

// Scanner finds where frames end. It remembers how far it has looked, so a frame that arrives in pieces is
// scanned once; payload bytes are skipped, not read. It keeps no reference to the bytes it is shown.
//
// A frame is one reply with the attributes before it, or one push. A Scanner serves one stream and one
// goroutine. After an error it stays failed.
type Scanner struct {
	lim     Limits
	pos     int     // start of the value that is not consumed yet, from the start of the frame
	seen    int     // that value's line has been searched up to here
	pending int     // payload bytes and line end that follow pos; 0 when a header does
	owed    int     // values to come, the one at pos included
	stack   []level // open aggregates, outermost first
	bulk    Type    // whose payload is pending
	root    Type    // type of the frame, attributes aside; 0 until it is seen
	visited int     // bytes looked at so far; for the test of linearity
	err     error
}

// NewScanner returns a Scanner at a frame start.
func NewScanner(l Limits) *Scanner { return &Scanner{lim: l.withDefaults(), owed: 1} }

// Next looks for one whole frame at the start of buf. n > 0: the first n bytes are a frame of that kind, and
// the next call starts behind it. n = 0 without an error: it is incomplete; at least need bytes, counted from
// its start, are certainly required, and the next call must bring the same bytes and more (they may have
// moved); the kind is Push if it is known to become one. An error is a *ProtocolError.
func (s *Scanner) Next(buf []byte) (n, need int, kind Kind, err error) {
	if s.err != nil {
		return 0, 0, 0, s.err
	}
	if s.pos == 0 && s.seen == 0 && s.pending == 0 {
		if n := short(buf[:min(len(buf), s.lim.Line)]); n > 0 {
			s.visited += n
			return n, 0, Reply, nil
		}
	}
	for {
		if s.pending > 0 {
			if need = s.pos + s.pending + minValue*(s.owed-1); len(buf) < s.pos+s.pending {
				return 0, max(need, len(buf)+1), s.kindSoFar(), nil
			}
			if err = s.payload(buf[s.pos : s.pos+s.pending]); err != nil {
				break
			}
		} else {
			var ok bool
			if ok, err = s.header(buf); err != nil {
				break
			}
			if !ok {
				return 0, max(s.pos+minValue*s.owed, len(buf)+1), s.kindSoFar(), nil
			}
		}
		if s.owed == 0 {
			return s.finish()
		}
	}
	s.err = err
	return 0, 0, 0, err
}

// short is the length of the frame at the start of buf if that is a simple string or an integer of a few bytes, as
// most writes are answered with; 0 when it is anything else, or not certain.
func short(buf []byte) int {
	if len(buf) == 0 || buf[0] != '+' && buf[0] != ':' {
		return 0
	}
	number := buf[0] == ':'
	for i := 1; i < min(len(buf)-1, 18); i++ {
		switch c := buf[i]; {
		case c == '\r' && buf[i+1] == '\n' && i > 1:
			return i + 2
		case c < ' ' || number && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// finish ends the frame at pos and makes ready for the next one.
func (s *Scanner) finish() (n, need int, kind Kind, err error) {
	n, kind = s.pos, s.kindSoFar()
	if s.root == TypeError || s.root == TypeBulkError {
		kind = Refusal
	}
	s.pos, s.seen, s.owed, s.root = 0, 0, 1, 0
	return n, 0, kind, nil
}

// kindSoFar is Push once the frame is known to be one: it belongs to no request, also before it is whole.
func (s *Scanner) kindSoFar() (kind Kind) {
	if s.root == TypePush {
		kind = Push
	}
	return kind
}

// payload consumes the bytes of a bulk value and their line end.
func (s *Scanner) payload(b []byte) error {
	end := len(b) - 2
	if b[end] != '\r' || b[end+1] != '\n' {
		return s.fault(s.bulk, "payload does not end with a line end where its length says")
	}
	if s.bulk == TypeVerbatim && b[3] != ':' {
		return s.fault(s.bulk, "payload has no format prefix")
	}
	s.visited += 2
	s.pos += len(b)
	s.pending = 0
	s.complete()
	return nil
}

// header consumes one line. It reports false when the line is not whole.
func (s *Scanner) header(buf []byte) (bool, error) {
	if s.pos >= len(buf) {
		return false, nil
	}
	t := Type(buf[s.pos])
	sh := t.shape()
	if sh == unknown {
		return false, s.fault(t, "no such type")
	}
	limit := maxHeader
	if t == TypeSimple || t == TypeError || t == TypeBigNumber {
		limit = s.lim.Line
	}
	from, to := max(s.seen, s.pos+1), min(len(buf), s.pos+limit)
	i := -1
	if from < to {
		i = bytes.IndexByte(buf[from:to], '\n')
	}
	if i < 0 {
		s.visited += max(to-from, 0)
		s.seen = max(to, from)
		if len(buf) >= s.pos+limit {
			return false, s.fault(t, "line longer than "+itoa(limit)+" bytes")
		}
		return false, nil
	}
	end := from + i // of the line feed
	s.visited += i + 1
	if end == s.pos+1 || buf[end-1] != '\r' {
		return false, s.fault(t, "line feed without carriage return")
	}
	text := buf[s.pos+1 : end-1]
	next := end + 1
	if len(s.stack) == 0 && t != TypeAttribute {
		s.root = t
	}
	switch sh {
	case line:
		if reason := checkLine(t, text); reason != "" {
			return false, s.fault(t, reason)
		}
		s.pos, s.seen = next, next
		s.complete()
	case bulk:
		n, reason := parseLength(t, text, s.lim.Bulk)
		if reason != "" {
			return false, s.fault(t, reason)
		}
		s.pos, s.seen = next, next
		if n < 0 {
			s.complete()
			break
		}
		s.pending, s.bulk = n+2, t
	case aggregate:
		n, reason := parseLength(t, text, s.lim.Elements)
		if reason != "" {
			return false, s.fault(t, reason)
		}
		if reason = s.open(t, n); reason != "" {
			return false, s.fault(t, reason)
		}
		s.pos, s.seen = next, next
	}
	return true, nil
}

// open enters an aggregate that announced n.
func (s *Scanner) open(t Type, n int) (reason string) {
	if t == TypePush && (len(s.stack) > 0 || n < 1) {
		return "a push is never empty and never inside another value"
	}
	if n <= 0 {
		if t != TypeAttribute {
			s.complete()
		}
		return ""
	}
	if t.paired() {
		n *= 2
	}
	if len(s.stack) >= s.lim.Depth {
		return "nested deeper than " + itoa(s.lim.Depth)
	}
	if n > s.lim.Elements-s.owed+1 {
		return "more than " + itoa(s.lim.Elements) + " values announced"
	}
	s.owed += n
	if t != TypeAttribute {
		s.owed--
	}
	s.stack = append(s.stack, level{left: n, attr: t == TypeAttribute})
	return ""
}

// complete counts one value as consumed, and with it all aggregates it was the last value of.
func (s *Scanner) complete() {
	s.owed--
	for i := len(s.stack) - 1; i >= 0; i-- {
		s.stack[i].left--
		if s.stack[i].left > 0 {
			return
		}
		attr := s.stack[i].attr
		s.stack = s.stack[:i]
		if attr {
			return
		}
	}
}

func (s *Scanner) fault(t Type, reason string) error {
	return &ProtocolError{Offset: s.pos, Type: t, Reason: reason}
}
