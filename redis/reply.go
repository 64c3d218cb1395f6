package redis

import (
	"github.com/fdengine/fullduplex/proto/resp"
)

// The methods here read the reply of a completed command. They may be called any number of times, by one
// goroutine at a time. Each returns ErrNoReply when there is none, the *ServerError when the reply is one, Nil
// when it is null, and a *resp.TypeMismatch when it is something else than asked for.

// Reader returns a reader over the reply, for replies that the other methods do not fit. What it returns is
// valid until Reset.
func (c *Cmd) Reader() (resp.Reader, error) {
	if !c.answered {
		return resp.Reader{}, ErrNoReply
	}
	if c.err != nil {
		return resp.Reader{}, c.err
	}
	return resp.NewReader(c.reply), nil
}

// read applies f to the reply, for replies of more than one value: the indirect call costs an allocation.
func read[T any](c *Cmd, f func(*resp.Reader) (T, error)) (T, error) {
	r, err := c.Reader()
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := f(&r)
	return v, own(err)
}

// Err is the error reply, or ErrNoReply; nil when there is a reply that is no error, also for a null.
func (c *Cmd) Err() error {
	_, err := c.Reader()
	return err
}

// Int64 is an integer, or text that is one.
func (c *Cmd) Int64() (int64, error) {
	r, err := c.Reader()
	if err != nil {
		return 0, err
	}
	v, err := r.Int()
	return v, own(err)
}

// Float64 is a double or integer, or text that is one.
func (c *Cmd) Float64() (float64, error) {
	r, err := c.Reader()
	if err != nil {
		return 0, err
	}
	v, err := r.Float()
	return v, own(err)
}

// Bool is a boolean, 0 or 1, or OK.
func (c *Cmd) Bool() (bool, error) {
	r, err := c.Reader()
	if err != nil {
		return false, err
	}
	v, err := r.Bool()
	return v, own(err)
}

// Text is any scalar as a string.
func (c *Cmd) Text() (string, error) {
	r, err := c.Reader()
	if err != nil {
		return "", err
	}
	v, err := r.Text()
	return v, own(err)
}

// Bytes is any scalar as bytes, valid until Reset.
func (c *Cmd) Bytes() ([]byte, error) {
	r, err := c.Reader()
	if err != nil {
		return nil, err
	}
	v, err := r.Bytes()
	return v, own(err)
}

// Append appends the bytes of any scalar to dst, which then does not depend on the Cmd. It allocates only when dst
// must grow. After an error dst is returned as it was.
func (c *Cmd) Append(dst []byte) ([]byte, error) {
	b, err := c.Bytes()
	if err != nil {
		return dst, err
	}
	return append(dst, b...), nil
}

// Strings is an array or set of scalars; a null element is empty. A map gives keys and values in turn.
func (c *Cmd) Strings() ([]string, error) {
	return read(c, func(r *resp.Reader) ([]string, error) {
		n, err := r.Array()
		if err != nil {
			return nil, err
		}
		out := make([]string, 0, n)
		for range n {
			s, err := r.Text()
			if err != nil && err != resp.ErrNull {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	})
}

// Slice is an array or set of anything, as Any describes; a map gives keys and values in turn.
func (c *Cmd) Slice() ([]any, error) {
	return read(c, func(r *resp.Reader) ([]any, error) {
		n, err := r.Array()
		if err != nil {
			return nil, err
		}
		out := make([]any, 0, n)
		for range n {
			v, err := r.Any()
			if err != nil {
				return nil, err
			}
			out = append(out, ownValue(v))
		}
		return out, nil
	})
}

// Map is a map, or the array of keys and values that stands for one in version 2, in the server's order.
func (c *Cmd) Map() (resp.Map, error) {
	return read(c, func(r *resp.Reader) (resp.Map, error) {
		n, err := r.Map()
		if err != nil {
			return nil, err
		}
		out := make(resp.Map, 0, n)
		for range n {
			k, err := r.Any()
			if err != nil {
				return nil, err
			}
			v, err := r.Any()
			if err != nil {
				return nil, err
			}
			out = append(out, resp.Entry{Key: k, Value: ownValue(v)})
		}
		return out, nil
	})
}

// Any is whatever was replied, as resp.Decode describes, with a *ServerError for each error inside; nil and Nil
// for a null.
func (c *Cmd) Any() (any, error) {
	return read(c, func(r *resp.Reader) (any, error) {
		if r.Null() {
			return nil, resp.ErrNull
		}
		v, err := r.Any()
		return ownValue(v), err
	})
}

// ownValue makes *ServerErrors of the errors inside a decoded value, in place.
func ownValue(v any) any {
	switch v := v.(type) {
	case resp.Error:
		return newServerError(v)
	case []any:
		for i := range v {
			v[i] = ownValue(v[i])
		}
	case resp.Map:
		for i := range v {
			v[i].Value = ownValue(v[i].Value)
		}
	}
	return v
}
