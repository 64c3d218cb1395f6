package redis

import (
	"bytes"
	"strconv"

	"github.com/fdengine/fullduplex/proto/resp"
)

// args are the arguments of a command, encoded as they are added, so that submitting copies one piece of memory. Only
// large ones stay where they are until then.
type args struct {
	enc    []byte
	large  *[]largeArg // nil: none
	n      int32
	worded bool // the first one is text
}

// larges are the payloads that enc only has room for.
func (a *args) larges() []largeArg {
	if a.large == nil {
		return nil
	}
	return *a.large
}

func (a *args) count() int { return int(a.n) }

// largeArg is the payload that belongs at enc[at:].
type largeArg struct {
	at int
	s  string
	b  []byte
}

// largeFrom is the size in bytes from which an argument is not copied when it is added.
const largeFrom = 16 << 10

func (a *args) addString(s string) {
	a.worded = a.worded || a.n == 0
	a.n++
	if len(s) >= largeFrom {
		a.addLarge(len(s), largeArg{s: s})
		return
	}
	a.enc = resp.AppendBulkString(a.enc, s)
}

func (a *args) addBytes(b []byte) {
	a.worded = a.worded || a.n == 0
	a.n++
	if len(b) >= largeFrom {
		a.addLarge(len(b), largeArg{b: b})
		return
	}
	a.enc = resp.AppendBulk(a.enc, b)
}

func (a *args) addLarge(size int, l largeArg) {
	a.enc = append(strconv.AppendInt(append(a.enc, '$'), int64(size), 10), '\r', '\n')
	l.at = len(a.enc)
	if a.large == nil {
		a.large = new([]largeArg)
	}
	*a.large = append(*a.large, l)
	a.enc = append(a.enc, '\r', '\n')
}

func (a *args) addInt(n int64) {
	a.n++
	a.enc = resp.AppendBulkInt(a.enc, n)
}

func (a *args) addUint(n uint64) {
	a.n++
	a.enc = resp.AppendBulkUint(a.enc, n)
}

func (a *args) addFloat(f float64) {
	a.n++
	a.enc = resp.AppendBulkFloat(a.enc, f)
}

// appendTo appends the request.
func (a *args) appendTo(dst []byte) []byte {
	dst = resp.AppendArrayHeader(dst, int(a.n))
	from := 0
	for _, l := range a.larges() {
		dst = append(append(append(dst, a.enc[from:l.at]...), l.s...), l.b...)
		from = l.at
	}
	return append(dst, a.enc[from:]...)
}

// argWalk walks arguments in order.
type argWalk struct {
	a          *args
	pos, large int
}

func (a *args) walk() argWalk { return argWalk{a: a} }

// next returns the text of the next argument; nil for a large one, which is no word of any table. It must not be called more
// often than there are arguments.
func (w *argWalk) next() []byte {
	enc := w.a.enc[w.pos:]
	size, i := 0, 1 // behind the dollar
	for ; enc[i] != '\r'; i++ {
		size = size*10 + int(enc[i]-'0')
	}
	i += 2
	if large := w.a.larges(); w.large < len(large) && large[w.large].at == w.pos+i {
		w.large++
		w.pos += i + 2
		return nil
	}
	w.pos += i + size + 2
	return enc[i : i+size : i+size]
}

// skip passes over n arguments.
func (w *argWalk) skip(n int) {
	for range n {
		w.next()
	}
}

// name is the first argument if it is text.
func (a *args) name() string {
	if !a.worded {
		return ""
	}
	if large := a.larges(); len(large) > 0 && bytes.IndexByte(a.enc, '\n')+1 == large[0].at {
		return large[0].s + string(large[0].b)
	}
	w := a.walk()
	return string(w.next())
}

// appendUpper appends text in capitals; nil when that cannot be a word of the table: it does not fit in dst, or has
// the character that separates words there.
func appendUpper(dst, text []byte) []byte {
	if len(dst)+len(text) > cap(dst) {
		return nil
	}
	for _, c := range text {
		if c == '|' {
			return nil
		}
		dst = append(dst, upper(c))
	}
	return dst
}

// isWord reports whether text is word, which is in capitals, in any letter case.
func isWord(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i := range len(word) {
		if upper(text[i]) != word[i] {
			return false
		}
	}
	return true
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
