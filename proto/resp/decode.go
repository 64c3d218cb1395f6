package resp

import "strconv"

// Entry is a pair of a Map.
type Entry struct{ Key, Value any }

// Map is a decoded map: its pairs in the order sent. Keys may be of any type and may repeat.
type Map []Entry

// Lookup returns the first value whose key is that string.
func (m Map) Lookup(key string) (any, bool) {
	for _, e := range m {
		if k, ok := e.Key.(string); ok && k == key {
			return e.Value, true
		}
	}
	return nil, false
}

// Decode decodes the one reply that frame holds. The result shares nothing with frame:
//
//	simple, bulk, verbatim   string
//	integer                  int64
//	double                   float64
//	boolean                  bool
//	big number               *big.Int
//	null                     nil
//	array, set, push         []any
//	map                      Map
//	error inside             Error, as a value
//
// An error reply as such is returned as the error, of type Error. Other errors are *ProtocolError, also for
// bytes behind the reply and for nesting deeper than 128.
func Decode(frame []byte) (any, error) {
	r := NewReader(frame)
	v, err := r.Any()
	if err != nil {
		return nil, err
	}
	if r.More() {
		return nil, &ProtocolError{Offset: r.pos, Reason: "bytes behind the reply"}
	}
	if e, ok := v.(Error); ok {
		return nil, e
	}
	return v, nil
}

// Any reads one whole value as Decode describes; an error is a value of type Error here.
func (r *Reader) Any() (any, error) { return r.any(defaultDepth) }

func (r *Reader) any(depth int) (any, error) {
	v, err := r.peek()
	if err != nil {
		return nil, err
	}
	r.pos = v.end
	if v.null() {
		return nil, nil
	}
	switch v.t {
	case TypeError, TypeBulkError:
		return Error(v.text), nil
	case TypeInt:
		n, _ := parseInt(v.text) // checked when the line was read
		return n, nil
	case TypeBool:
		return v.text[0] == 't', nil
	case TypeDouble:
		f, _ := strconv.ParseFloat(string(v.text), 64) // checked; out of range is an infinity
		return f, nil
	case TypeBigNumber:
		n, ok := bigInt(v.text)
		if !ok {
			return nil, &TypeMismatch{Got: v.t, Want: "a big number"}
		}
		return n, nil
	case TypeSimple, TypeBulk, TypeVerbatim:
		return string(v.text), nil
	}
	if depth == 0 {
		return nil, &ProtocolError{Offset: r.pos, Type: v.t, Reason: "nested deeper than " + itoa(defaultDepth)}
	}
	if v.n > (len(r.buf)-r.pos)/minValue {
		return nil, r.short()
	}
	if v.t == TypeMap {
		return r.pairs(v.n, depth-1)
	}
	return r.list(v.n, depth-1)
}

// maxAhead is how many elements are allocated on the word of a count alone, so that nested lies stay cheap.
const maxAhead = 1024

func (r *Reader) list(n, depth int) (any, error) {
	out := make([]any, 0, min(n, maxAhead))
	for range n {
		v, err := r.any(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (r *Reader) pairs(n, depth int) (any, error) {
	out := make(Map, 0, min(n, maxAhead))
	for range n {
		k, err := r.any(depth)
		if err != nil {
			return nil, err
		}
		v, err := r.any(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, Entry{k, v})
	}
	return out, nil
}
