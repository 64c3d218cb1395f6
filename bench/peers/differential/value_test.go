package differential

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/fdengine/fullduplex/proto/resp"
	"github.com/fdengine/fullduplex/redis"
)

// The form in which replies of both clients are compared: nil, int64, string, float64, bool, *big.Int, failure,
// []any and dict of those.

// failure is an error reply, at the top or inside.
type failure string

// dict is a map, in the order sent as far as the client keeps it.
type dict [][2]any

// ofOurs brings what redis.Cmd gives into that form.
func ofOurs(v any) any {
	switch v := v.(type) {
	case *redis.ServerError:
		return failure(strings.TrimPrefix(v.Error(), "redis: "))
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = ofOurs(v[i])
		}
		return out
	case resp.Map:
		out := make(dict, 0, len(v))
		for _, e := range v {
			k := ofOurs(e.Key)
			// XREAD of a stream that is named twice: go-redis keeps the last of equal keys.
			out = slices.DeleteFunc(out, func(o [2]any) bool { return render(o[0]) == render(k) })
			out = append(out, [2]any{k, ofOurs(e.Value)})
		}
		return out
	}
	return v
}

// ofTheirs brings what go-redis gives into that form.
func ofTheirs(v any) any {
	switch v := v.(type) {
	case error:
		return failure(v.Error())
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = ofTheirs(v[i])
		}
		return out
	case map[any]any:
		out := make(dict, 0, len(v))
		for k, e := range v {
			out = append(out, [2]any{ofTheirs(k), ofTheirs(e)})
		}
		return out
	}
	return v
}

// render writes a value so that two are equal when their texts are; the order of a dict does not count.
func render(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case int64:
		return ":" + strconv.FormatInt(v, 10)
	case string:
		return quote(v)
	case float64:
		return "," + strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return "#" + strconv.FormatBool(v)
	case *big.Int:
		return "(" + v.String()
	case failure:
		return "-" + string(v)
	case []any:
		return "[" + strings.Join(renderAll(v), " ") + "]"
	case dict:
		out := make([]string, len(v))
		for i, e := range v {
			out[i] = render(e[0]) + "=" + render(e[1])
		}
		slices.Sort(out)
		return "{" + strings.Join(out, " ") + "}"
	}
	return fmt.Sprintf("%T of no known kind: %v", v, v)
}

func renderAll(vs []any) []string {
	out := make([]string, len(vs))
	for i := range vs {
		out[i] = render(vs[i])
	}
	return out
}

// longest is how much of a text is kept; of longer ones the start and a digest of it all.
const longest = 400

// quote shows bytes, long ones by their start, length and digest.
func quote(s string) string {
	if len(s) <= longest {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%q... (%d bytes, %x)", s[:40], len(s), sha256.Sum256([]byte(s)))
}

// brief keeps a result small; equal texts stay equal and different ones different.
func brief(s string) string {
	if len(s) <= longest {
		return s
	}
	return fmt.Sprintf("%s... (%d characters, %x)", s[:longest/2], len(s), sha256.Sum256([]byte(s)))
}

// answer is the outcome of one command as text. raw: the bytes as they came. What is no reply at all begins with an
// exclamation mark, so that it equals nothing.
func answer(c *redis.Cmd, o *op, err error) string {
	var e *redis.ServerError
	if err != nil && (!errors.As(err, &e) || err != error(e)) {
		return "! " + err.Error()
	}
	if o.raw {
		return rawAnswer(c, e)
	}
	v, err := c.Any()
	switch {
	case errors.Is(err, redis.Nil):
		v = nil
	case errors.As(err, &e):
		v = e
	case err != nil:
		return "! " + err.Error()
	}
	return brief(render(o.even(ofOurs(v))))
}

func rawAnswer(c *redis.Cmd, e *redis.ServerError) string {
	if e != nil {
		return quote("-" + strings.TrimPrefix(e.Error(), "redis: ") + "\r\n")
	}
	r, err := c.Reader()
	if err != nil {
		return "! " + err.Error()
	}
	b, err := r.Raw()
	if err != nil {
		return "! " + err.Error()
	}
	return quote(string(b))
}
