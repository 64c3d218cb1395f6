package differential

import (
	"slices"
	"strings"
)

// shape says which parts of a reply two equal servers may give differently, and how they are made equal. A reply of
// the shape exact is compared as it is.
type shape uint8

const (
	exact     shape = iota
	bag             // values in the order of a hash table
	pairs           // field and value in turn, a map, or a list of pairs: in the order of a hash table
	scanBag         // cursor and bag
	scanPairs       // cursor and pairs
	remaining       // time to live: whether there is one, not how much
	until           // time of expiry: exact when it was given as such, otherwise whether there is one
	idle            // tells how long consumers and entries have been idle
	dump            // serialized value: whole for strings and lists, else its kind
)

// even makes the parts of a reply equal that its shape names.
func (o *op) even(v any) any {
	switch o.shape {
	case bag:
		return sorted(v)
	case pairs:
		return paired(v)
	case scanBag, scanPairs:
		l, ok := v.([]any)
		if !ok || len(l) != 2 {
			return v
		}
		if o.shape == scanBag {
			return []any{l[0], sorted(l[1])}
		}
		return []any{l[0], paired(l[1])}
	case remaining:
		if n, ok := v.(int64); ok && n > 0 {
			return "some time"
		}
	case until:
		if n, ok := v.(int64); ok && n > 0 && n < absolute {
			return "some time"
		}
		if n, ok := v.(int64); ok && n > absolute*100 && n < absolute*1000 { // in milliseconds
			return "some time"
		}
	case idle:
		return withoutIdle(v)
	case dump:
		// The first byte is the kind of the value; 0 is a string, 18 a list.
		if s, ok := v.(string); ok && s[0] != 0 && s[0] != 18 {
			return s[:1]
		}
	}
	return v
}

func sorted(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	l = slices.Clone(l)
	slices.SortFunc(l, func(a, b any) int { return strings.Compare(render(a), render(b)) })
	return l
}

// paired makes pairs of a flat list and sorts them; a map is unordered as it is.
func paired(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	if len(l) > 0 {
		if _, nested := l[0].([]any); nested {
			return sorted(l)
		}
	}
	var out []any
	for i := 0; i+1 < len(l); i += 2 {
		out = append(out, []any{l[i], l[i+1]})
	}
	if len(l)%2 == 1 {
		out = append(out, l[len(l)-1])
	}
	return sorted(out)
}

// withoutIdle removes how long something is idle from a reply of XPENDING (id, consumer, idle, deliveries) and XINFO
// (the value named so).
func withoutIdle(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 4 {
			_, id := v[0].(string)
			_, consumer := v[1].(string)
			_, ms := v[2].(int64)
			if _, n := v[3].(int64); id && consumer && ms && n {
				return []any{v[0], v[1], "idle", v[3]}
			}
		}
		out := make([]any, len(v))
		for i := range v {
			if out[i] = withoutIdle(v[i]); i > 0 && v[i-1] == "idle" {
				out[i] = "some time"
			}
		}
		return out
	case dict:
		out := make(dict, len(v))
		for i, e := range v {
			if out[i] = [2]any{e[0], withoutIdle(e[1])}; e[0] == "idle" {
				out[i][1] = "some time"
			}
		}
		return out
	}
	return v
}
