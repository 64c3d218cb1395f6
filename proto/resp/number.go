package resp

import (
	"math"
	"strconv"
)

// maxDigits bounds a big number: making one of its text takes time in the square of that.
const maxDigits = 16 << 10

func itoa(n int) string { return strconv.Itoa(n) }

// parseLength reads the length or count of a header: digits only, or -1 where t has such a null. The reason is
// empty when it is legal.
func parseLength(t Type, b []byte, limit int) (n int, reason string) {
	if len(b) == 1 && b[0] == '?' {
		return 0, "streamed values are not supported"
	}
	if len(b) == 2 && b[0] == '-' && b[1] == '1' && t.nullable() {
		return -1, ""
	}
	if len(b) == 0 {
		return 0, "length is missing"
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, "length is not a number"
		}
		if n > limit/10 {
			return 0, "length over the limit of " + itoa(limit)
		}
		if n = n*10 + int(c-'0'); n > limit {
			return 0, "length over the limit of " + itoa(limit)
		}
	}
	if t == TypeVerbatim && n < 4 {
		return 0, "too short for a format prefix"
	}
	return n, ""
}

// checkLine says what is wrong with the text of a line value; empty when nothing is.
func checkLine(t Type, b []byte) string {
	switch t {
	case TypeInt:
		if _, ok := parseInt(b); !ok {
			return "not a 64-bit number"
		}
	case TypeNull:
		if len(b) != 0 {
			return "stray characters"
		}
	case TypeBool:
		if len(b) != 1 || b[0] != 't' && b[0] != 'f' {
			return "neither t nor f"
		}
	case TypeDouble:
		if !isFloat(b) {
			return "not a floating-point number"
		}
	case TypeBigNumber:
		switch d := unsigned(b); {
		case len(d) == 0 || digits(d) != len(d):
			return "not a number"
		case len(d) > maxDigits:
			return "more than " + itoa(maxDigits) + " digits"
		}
	}
	return ""
}

// parseInt reads an optional sign and digits that fit in 64 bits.
func parseInt(b []byte) (int64, bool) {
	d := unsigned(b)
	if len(d) == 0 {
		return 0, false
	}
	var u uint64
	for _, c := range d {
		if c < '0' || c > '9' || u > math.MaxUint64/10-1 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if b[0] == '-' {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

func unsigned(b []byte) []byte {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		return b[1:]
	}
	return b
}

// digits counts the digits at the start of b.
func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}

// isFloat accepts what the protocol calls a double: decimal with optional fraction and exponent, inf, nan.
func isFloat(b []byte) bool {
	b = unsigned(b)
	if s := string(b); s == "inf" || s == "nan" {
		return true
	}
	whole := digits(b)
	b = b[whole:]
	frac := 0
	if len(b) > 0 && b[0] == '.' {
		frac = digits(b[1:])
		b = b[1+frac:]
	}
	if whole+frac == 0 {
		return false
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = unsigned(b[1:])
		return len(b) > 0 && digits(b) == len(b)
	}
	return len(b) == 0
}
