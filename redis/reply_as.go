package redis

import "github.com/fdengine/fullduplex/proto/resp"

// As reads the reply with f, which takes one value off a reader: (*resp.Reader).Int, or a function that goes
// through a reply of many values in the order of the wire. What f returns may alias the reply, which is valid
// until Reset.
func As[T any](c *Cmd, f func(*resp.Reader) (T, error)) (T, error) { return read(c, f) }

// SliceOf is an array or set whose elements f reads, such as SliceOf(c, (*resp.Reader).Int). A null element is
// the zero value.
func SliceOf[T any](c *Cmd, f func(*resp.Reader) (T, error)) ([]T, error) {
	return read(c, func(r *resp.Reader) ([]T, error) {
		n, err := r.Array()
		if err != nil {
			return nil, err
		}
		out := make([]T, n)
		for i := range out {
			if r.Null() {
				continue
			}
			if out[i], err = f(r); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// MapOf is a map with text as keys, or the array that stands for one in version 2, whose values f reads: HGETALL is
// MapOf(c, (*resp.Reader).Text). A null value is the zero value; of two equal keys the later one stays.
func MapOf[T any](c *Cmd, f func(*resp.Reader) (T, error)) (map[string]T, error) {
	return read(c, func(r *resp.Reader) (map[string]T, error) {
		n, err := r.Map()
		if err != nil {
			return nil, err
		}
		out := make(map[string]T, n)
		for range n {
			k, err := r.Text()
			if err != nil {
				return nil, err
			}
			var v T
			if !r.Null() {
				if v, err = f(r); err != nil {
					return nil, err
				}
			}
			out[k] = v
		}
		return out, nil
	})
}
