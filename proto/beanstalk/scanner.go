package beanstalk

import "bytes"

// Kind is what a Scanner found.
type Kind uint8

const (
	KindReply   Kind = iota // the request was carried out, or there is nothing to reserve
	KindRefusal             // it was not; see Word.Refusal
)

// Scanner finds where replies end. It remembers how far it has looked, so that a reply that arrives in pieces is
// scanned once; bodies are skipped, not read. It keeps no reference to the bytes it is shown. A Scanner serves one
// stream and one goroutine. After an error it stays failed.
type Scanner struct {
	lim     Limits
	seen    int // the line has been searched up to here
	total   int // of the reply whose line is known; 0: it is not
	visited int // bytes looked at so far; for the test of linearity
	err     error
}

// NewScanner returns a Scanner at the start of a reply.
func NewScanner(l Limits) *Scanner { return &Scanner{lim: l.withDefaults()} }

// Next looks for one whole reply at the start of buf. n > 0: the first n bytes are one of that kind, and the next
// call starts behind it. n = 0 without an error: it is incomplete; at least need bytes, counted from its start, are
// certainly required, and the next call must bring the same bytes and more (they may have moved). An error is a
// *ProtocolError.
func (s *Scanner) Next(buf []byte) (n, need int, kind Kind, err error) {
	if s.err != nil {
		return 0, 0, 0, s.err
	}
	if s.total == 0 {
		limit := min(len(buf), s.lim.Line)
		i := bytes.IndexByte(buf[s.seen:limit], '\n')
		if i < 0 {
			s.visited += limit - s.seen
			s.seen = limit
			if limit == s.lim.Line {
				return s.fail(buf, "line is too long")
			}
			return 0, max(minLine, len(buf)+1), 0, nil
		}
		end := s.seen + i + 1
		s.visited += i + 1
		r, bodySize, reason := parseLine(buf[:end])
		s.visited += end
		s.seen = 0
		if reason != "" {
			return s.fail(buf[:end], reason)
		}
		if bodySize < 0 {
			if r.Word.Refusal() {
				kind = KindRefusal
			}
			return end, 0, kind, nil
		}
		if bodySize > s.lim.Body {
			return s.fail(buf[:end], "body is too long")
		}
		s.total = end + bodySize + 2
	}
	if len(buf) < s.total {
		return 0, s.total, 0, nil
	}
	n, s.total = s.total, 0
	if buf[n-2] != '\r' || buf[n-1] != '\n' {
		return s.fail(buf[:n], reasonBody)
	}
	return n, 0, KindReply, nil
}

func (s *Scanner) fail(line []byte, reason string) (n, need int, kind Kind, err error) {
	s.err = fault(line, reason)
	return 0, 0, 0, s.err
}
