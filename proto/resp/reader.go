package resp

import (
	"math/big"
	"strconv"
)

// Reader walks the values of a whole frame, in order, aggregates entered rather than nested: after Array has
// returned 3 the next three values are its elements. Attributes are skipped. Each method consumes exactly one
// value (or one aggregate header), also when it returns ErrNull, an Error or a *TypeMismatch, so a caller may
// go on with the next value; after a *ProtocolError it may not.
//
// The frame should come from a Scanner; a Reader checks bounds all the same and never panics on other bytes.
// It keeps the frame, and what Bytes and Raw return aliases it. The zero Reader is at the end of nothing.
type Reader struct {
	buf []byte
	pos int
}

// NewReader returns a Reader at the first value of frame, which may hold several frames one after another.
func NewReader(frame []byte) Reader { return Reader{buf: frame} }

// value is one value, or the header of an aggregate.
type value struct {
	t    Type
	text []byte // the line, or the payload of a bulk type
	n    int    // count of an aggregate, length of a bulk; -1 is the null
	end  int    // where the next value starts
}

func (v value) null() bool { return v.n < 0 || v.t == TypeNull }

// More reports whether anything is left.
func (r *Reader) More() bool { return r.pos < len(r.buf) }

// Type returns the type of the next value, attributes skipped, without consuming it; 0 at the end or when the
// bytes there are not the protocol. A null of version 2 shows as the type that carries it.
func (r *Reader) Type() Type {
	v, err := r.peek()
	if err != nil {
		return 0
	}
	return v.t
}

// Null consumes the next value and reports true if it is a null of either version; else it consumes nothing.
func (r *Reader) Null() bool {
	v, err := r.peek()
	if err != nil || !v.null() {
		return false
	}
	r.pos = v.end
	return true
}

// Int reads an integer, or text that is one.
func (r *Reader) Int() (int64, error) {
	v, err := r.scalar("an integer")
	if err != nil {
		return 0, err
	}
	switch v.t {
	case TypeInt, TypeBulk, TypeSimple, TypeBigNumber:
		if n, ok := parseInt(v.text); ok {
			return n, nil
		}
	case TypeBool:
		if v.text[0] == 't' {
			return 1, nil
		}
		return 0, nil
	}
	return 0, &TypeMismatch{Got: v.t, Want: "an integer"}
}

// Float reads a double or an integer, or text that is one.
func (r *Reader) Float() (float64, error) {
	v, err := r.scalar("a number")
	if err != nil {
		return 0, err
	}
	switch v.t {
	case TypeDouble, TypeInt, TypeBulk, TypeSimple, TypeBigNumber:
		// Range errors still give the closest value, an infinity: what the server sent is not a fault.
		if isFloat(v.text) {
			f, _ := strconv.ParseFloat(string(v.text), 64)
			return f, nil
		}
	}
	return 0, &TypeMismatch{Got: v.t, Want: "a number"}
}

// Bool reads a boolean; the integers 0 and 1, also as text; and OK, which is true.
func (r *Reader) Bool() (bool, error) {
	v, err := r.scalar("a boolean")
	if err != nil {
		return false, err
	}
	switch string(v.text) {
	case "t", "f":
		if v.t == TypeBool {
			return v.text[0] == 't', nil
		}
	case "0", "1":
		return v.text[0] == '1', nil
	case "OK":
		return true, nil
	}
	return false, &TypeMismatch{Got: v.t, Want: "a boolean"}
}

// Bytes reads any scalar as the bytes it was written with; a verbatim string without its format. The result
// aliases the frame.
func (r *Reader) Bytes() ([]byte, error) {
	if b, ok := r.status(); ok {
		return b, nil
	}
	v, err := r.scalar("text")
	if err != nil {
		return nil, err
	}
	return v.text, nil
}

// status consumes the next value if it is a short simple string, such as the OK that answers most writes, and does
// it in a tenth of the time of the general way.
func (r *Reader) status() ([]byte, bool) {
	b := r.buf[r.pos:]
	if len(b) == 0 || Type(b[0]) != TypeSimple {
		return nil, false
	}
	for i := 1; i < min(len(b)-1, 32) && b[i] != '\n'; i++ {
		if b[i] != '\r' {
			continue
		}
		if b[i+1] != '\n' {
			break
		}
		r.pos += i + 2
		return b[1:i:i], true
	}
	return nil, false
}

// Text is Bytes as a string of its own.
func (r *Reader) Text() (string, error) {
	b, err := r.Bytes()
	return string(b), err
}

// Array enters an array, set or push and returns how many values follow; of a map, its keys and values in turn.
func (r *Reader) Array() (int, error) {
	v, err := r.aggregate("an array")
	if err != nil {
		return 0, err
	}
	if v.t.paired() {
		return 2 * v.n, nil
	}
	return v.n, nil
}

// Map enters a map, or the array that stands for one in version 2, and returns how many pairs follow.
func (r *Reader) Map() (int, error) {
	v, err := r.aggregate("a map")
	if err != nil {
		return 0, err
	}
	if v.t == TypeMap {
		return v.n, nil
	}
	if v.n%2 != 0 {
		if err := r.skip(v.n); err != nil {
			return 0, err
		}
		return 0, &TypeMismatch{Got: v.t, Want: "a map"}
	}
	return v.n / 2, nil
}

// Raw consumes one whole value, nested ones included, and returns its bytes without the attributes before it.
// They alias the frame.
func (r *Reader) Raw() ([]byte, error) {
	if _, err := r.peek(); err != nil {
		return nil, err
	}
	from := r.pos
	if err := r.skip(1); err != nil {
		return nil, err
	}
	return r.buf[from:r.pos:r.pos], nil
}

// Skip consumes one whole value, nested ones included.
func (r *Reader) Skip() error { return r.skip(1) }

// skip consumes n whole values. It needs no stack: only the number of values still owed matters.
func (r *Reader) skip(n int) error {
	for n > 0 {
		v, err := r.at()
		if err != nil {
			return err
		}
		r.pos = v.end
		if v.t != TypeAttribute {
			n--
		}
		if v.t.shape() == aggregate && v.n > 0 {
			n += v.n
			if v.t.paired() {
				n += v.n
			}
		}
		if n > (len(r.buf)-r.pos)/minValue {
			return r.short()
		}
	}
	return nil
}

// scalar consumes the next value, which must be neither null, error nor aggregate.
func (r *Reader) scalar(want string) (value, error) {
	v, err := r.peek()
	if err != nil {
		return v, err
	}
	if v.t.shape() == aggregate && !v.null() {
		if err := r.skip(1); err != nil {
			return v, err
		}
		return v, &TypeMismatch{Got: v.t, Want: want}
	}
	r.pos = v.end
	return v, v.fault()
}

// aggregate consumes the header of the next value, which must be an aggregate and not null.
func (r *Reader) aggregate(want string) (value, error) {
	v, err := r.peek()
	if err != nil {
		return v, err
	}
	r.pos = v.end
	if err := v.fault(); err != nil {
		return v, err
	}
	if v.t.shape() != aggregate {
		return v, &TypeMismatch{Got: v.t, Want: want}
	}
	if v.n > (len(r.buf)-r.pos)/minValue {
		return v, r.short()
	}
	return v, nil
}

// fault is the error that reading v as anything gives: ErrNull, an Error, or nil.
func (v value) fault() error {
	switch {
	case v.null():
		return ErrNull
	case v.t == TypeError || v.t == TypeBulkError:
		return Error(v.text)
	}
	return nil
}

// bigInt reads the text of a big number.
func bigInt(b []byte) (*big.Int, bool) { return new(big.Int).SetString(string(b), 10) }
