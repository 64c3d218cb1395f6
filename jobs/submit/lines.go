package submit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// ErrLineTooLong is a line over Options.MaxLine. The line is skipped whole; the next one is read as usual.
var ErrLineTooLong = errors.New("line too long")

// lines splits a stream at LF or CRLF. A byte order mark at the very start is dropped, a last line without a
// line end counts, and bytes are passed on as they are. It holds at most one line of max bytes.
type lines struct {
	r    *bufio.Reader
	max  int
	n    int64 // lines returned so far
	long []byte
	sum  *xxhash.Digest // of the lines returned so far; nil: not wanted
}

func newLines(r io.Reader, max int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// buffered says whether next can return a line without reading from the stream, as far as that is known.
func (l *lines) buffered() bool {
	n := l.r.Buffered()
	if n == 0 {
		return false
	}
	b, _ := l.r.Peek(n) // cannot fail: these bytes are there
	return bytes.IndexByte(b, '\n') >= 0
}

// next returns the next line and its number, from 1. The line is valid until the next call. io.EOF ends the
// stream, ErrLineTooLong speaks of this line only, any other error is the stream's.
func (l *lines) next() (line []byte, number int64, err error) {
	if l.n == 0 {
		l.dropBOM()
	}
	l.long = l.long[:0]
	over := 0 // bytes of a line that is already over max
	for {
		part, err := l.r.ReadSlice('\n')
		if l.sum != nil {
			_, _ = l.sum.Write(bytes.TrimSuffix(part, []byte("\n"))) // a hash does not fail
		}
		switch {
		case over > 0:
			over += len(part)
		case err == nil && len(l.long) == 0:
			line = part // the common case: no copy
		case len(l.long)+len(part) > l.max+2: // + CRLF
			over = len(l.long) + len(part)
			line, l.long = nil, l.long[:0]
		default:
			l.long = append(l.long, part...)
			line = l.long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, l.n + 1, err
		}
		if err != nil && len(line) == 0 && over == 0 {
			return nil, l.n, io.EOF
		}
		l.n++
		if l.sum != nil {
			_, _ = l.sum.Write([]byte("\n")) // also for a last line without an end, which may get one later
		}
		line = trimEnd(line)
		if over > 0 || len(line) > l.max {
			return nil, l.n, fmt.Errorf("%w: %d bytes, the limit is %d", ErrLineTooLong, over+len(line), l.max)
		}
		return line, l.n, nil
	}
}

func (l *lines) dropBOM() {
	if b, _ := l.r.Peek(3); bytes.Equal(b, []byte("\xef\xbb\xbf")) {
		_, _ = l.r.Discard(3) // cannot fail: peeked
	}
}

func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
