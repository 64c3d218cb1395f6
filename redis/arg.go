package redis

import (
	"math"

	"github.com/fdengine/fullduplex/proto/resp"
)

// arg is one argument of a command, kept unencoded and without an allocation of its own.
type arg struct {
	kind argKind
	s    string
	b    []byte
	n    uint64 // the number, or the bits of a float
}

type argKind uint8

const (
	argString argKind = iota
	argBytes
	argInt
	argUint
	argFloat
)

func (a *arg) appendTo(dst []byte) []byte {
	switch a.kind {
	case argBytes:
		return resp.AppendBulk(dst, a.b)
	case argInt:
		return resp.AppendBulkInt(dst, int64(a.n))
	case argUint:
		return resp.AppendBulkUint(dst, a.n)
	case argFloat:
		return resp.AppendBulkFloat(dst, math.Float64frombits(a.n))
	}
	return resp.AppendBulkString(dst, a.s)
}

// appendUpper appends the argument's text in capitals; nil when that cannot be a word of the table: it is a
// number, does not fit in dst, or has the character that separates words there.
func (a *arg) appendUpper(dst []byte) []byte {
	switch a.kind {
	case argString:
		if len(dst)+len(a.s) > cap(dst) {
			return nil
		}
		for i := range len(a.s) {
			if a.s[i] == '|' {
				return nil
			}
			dst = append(dst, upper(a.s[i]))
		}
		return dst
	case argBytes:
		if len(dst)+len(a.b) > cap(dst) {
			return nil
		}
		for _, c := range a.b {
			if c == '|' {
				return nil
			}
			dst = append(dst, upper(c))
		}
		return dst
	}
	return nil
}

// is reports whether the argument's text is word, which is in capitals, in any letter case.
func (a *arg) is(word string) bool {
	switch a.kind {
	case argString:
		if len(a.s) != len(word) {
			return false
		}
		for i := range len(word) {
			if upper(a.s[i]) != word[i] {
				return false
			}
		}
		return true
	case argBytes:
		if len(a.b) != len(word) {
			return false
		}
		for i := range len(word) {
			if upper(a.b[i]) != word[i] {
				return false
			}
		}
		return true
	}
	return false
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
