package resp

import (
	"bytes"
	"math"
)

// peek moves past attributes and decodes the value or header there without consuming it.
func (r *Reader) peek() (value, error) {
	for {
		v, err := r.at()
		if err != nil || v.t != TypeAttribute {
			return v, err
		}
		r.pos = v.end
		if v.n > (len(r.buf)-r.pos)/(2*minValue) {
			return v, r.short()
		}
		if err := r.skip(2 * v.n); err != nil {
			return v, err
		}
	}
}

// at decodes the value or header at pos.
func (r *Reader) at() (value, error) {
	b := r.buf[r.pos:]
	i := bytes.IndexByte(b, '\n')
	if i < 2 || b[i-1] != '\r' {
		return value{}, r.short()
	}
	v := value{t: Type(b[0]), text: b[1 : i-1 : i-1], end: r.pos + i + 1}
	reason := ""
	switch v.t.shape() {
	case unknown:
		reason = "no such type"
	case line:
		reason = checkLine(v.t, v.text)
	case aggregate:
		v.n, reason = parseLength(v.t, v.text, math.MaxInt/16)
	case bulk:
		if v.n, reason = parseLength(v.t, v.text, math.MaxInt/16); reason != "" || v.n < 0 {
			break
		}
		if len(b)-(i+1) < v.n+2 {
			return value{}, r.short()
		}
		v.text = b[i+1 : i+1+v.n : i+1+v.n]
		v.end += v.n + 2
		if v.t == TypeVerbatim {
			v.text = v.text[4:]
		}
	}
	if reason != "" {
		return value{}, &ProtocolError{Offset: r.pos, Type: v.t, Reason: reason}
	}
	return v, nil
}

func (r *Reader) short() error {
	var t Type
	if r.pos < len(r.buf) {
		t = Type(r.buf[r.pos])
	}
	return &ProtocolError{Offset: r.pos, Type: t, Reason: "value is not whole"}
}
