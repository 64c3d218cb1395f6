package differential

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// absolute is a time of expiry far from now, in seconds since 1970. Relative ones end before it.
const absolute = 4_000_000_000

// kinds are the words for keys, by what they usually hold. Those of the words t, short strings, and sorted, lists, are
// not among them and never hold anything else.
const kinds = "string hash list set zset stream bitmap hll geo"

// keysOfAKind is how many keys there are of each.
const keysOfAKind = 8

func (w *writer) key(kind string) any {
	name := fmt.Sprintf("%d:%s:%d", w.caller, kind, w.IntN(keysOfAKind))
	if w.IntN(2) == 0 {
		return []byte(name)
	}
	return name
}

// word gives a word of a row its random meaning; one that has none stands for itself.
func (w *writer) word(name string) any {
	switch name {
	case "string", "hash", "list", "set", "zset", "stream", "bitmap", "hll", "geo":
		if w.IntN(25) == 0 {
			return w.word("any")
		}
		return w.key(name)
	case "any":
		all := strings.Fields(kinds)
		return w.key(all[w.IntN(len(all))])
	case "t", "own", "sorted":
		return w.key(name)
	case "mykeys":
		return fmt.Sprintf("%d:*", w.caller)
	case "caller":
		return strconv.Itoa(w.caller)
	case "value":
		return w.value()
	case "small":
		return fmt.Sprintf("v%d", w.IntN(40))
	case "field":
		return "f" + strconv.Itoa(w.IntN(60))
	case "member":
		if w.IntN(2) == 0 {
			return int64(w.IntN(90))
		}
		return fmt.Sprintf("m%d", w.IntN(90))
	case "index":
		return int64(w.IntN(30) - 12)
	case "count":
		return int64(1 + w.IntN(12))
	case "everything":
		return int64(1_000_000)
	case "integer":
		return w.integer()
	case "double":
		return w.double()
	case "decimal": // as text: the two clients write the same float64 in different ways
		return strconv.FormatFloat(w.NormFloat64()*1000, 'f', 1+w.IntN(9), 64)
	case "offset":
		return int64(w.IntN(2000))
	case "bit":
		return int64(w.IntN(2))
	case "ttl":
		return int64(10_000 + 1000*w.IntN(20))
	case "ttlms":
		return int64(1000 * (10_000 + 1000*w.IntN(20)))
	case "at":
		return int64(absolute + w.IntN(1000))
	case "atms":
		return int64(absolute+w.IntN(1000)) * 1000
	case "score":
		return []any{"-inf", "+inf", int64(w.IntN(40) - 20), "(" + strconv.Itoa(w.IntN(40)-20), w.Float64() * 20}[w.IntN(5)]
	case "lex":
		return []any{"-", "+", fmt.Sprintf("[m%d", w.IntN(90)), fmt.Sprintf("(m%d", w.IntN(90))}[w.IntN(4)]
	case "newid":
		w.ids += 1 + w.IntN(3)
		return []any{fmt.Sprintf("%d-%d", w.ids, w.IntN(3)), strconv.Itoa(w.ids), fmt.Sprintf("%d-*", w.ids), w.word("id")}[w.IntN(4)]
	case "id":
		return fmt.Sprintf("%d-%d", max(0, w.ids-w.IntN(60)), w.IntN(3))
	case "from":
		return []any{"-", "(" + w.word("id").(string), w.word("id")}[w.IntN(3)]
	case "to":
		return []any{"+", "(" + w.word("id").(string), w.word("id")}[w.IntN(3)]
	case "group":
		return "g" + strconv.Itoa(w.IntN(3))
	case "consumer":
		return "c" + strconv.Itoa(w.IntN(3))
	case "lon":
		return float64(w.IntN(360_000))/1000 - 180
	case "lat":
		return float64(w.IntN(168_000))/1000 - 84
	case "pattern":
		return fmt.Sprintf("%d:%s:*", w.caller, strings.Fields(kinds)[w.IntN(9)])
	}
	if lua, ok := w.lua(name); ok {
		return lua
	}
	return name
}

func (w *writer) integer() any {
	switch w.IntN(6) {
	case 0:
		return int64(w.Uint64())
	case 1:
		return w.Uint64() // half of them are out of range
	case 2:
		return w.IntN(20000) - 10000
	}
	return int64(w.IntN(200) - 100)
}

func (w *writer) double() any {
	switch w.IntN(8) {
	case 0:
		return []any{"inf", "-inf", "+inf", "1e308", "5e-324", "3.0e3", "0", "-0", "nan"}[w.IntN(9)]
	case 1:
		return w.NormFloat64() * 1e12
	case 2, 3:
		return w.NormFloat64()
	}
	return int64(w.IntN(40) - 20)
}

// value is what is stored: often short, sometimes empty, a number or binary, seldom large.
func (w *writer) value() any {
	switch n := w.IntN(300); {
	case n == 0:
		return bytesOf(w.Rand, 1<<(14+w.IntN(5))) // 16 KiB to 256 KiB
	case n == 1 && w.IntN(25) == 0:
		return bytesOf(w.Rand, 1<<20+w.IntN(3<<20))
	case n < 30:
		return ""
	case n < 60:
		return w.integer()
	case n < 80:
		return w.word("decimal")
	case n < 130:
		return bytesOf(w.Rand, w.IntN(64))
	case n < 150:
		return bytesOf(w.Rand, w.IntN(2000))
	case n < 170:
		return []string{"\r\n", "$-1\r\n", "+OK\r\n", "-ERR x\r\n", "*1\r\n", "\x00", "ÿ", "%1\r\n:1\r\n:2\r\n"}[w.IntN(8)]
	}
	return fmt.Sprintf("value %d", w.IntN(1000))
}

// bytesOf gives bytes that are random in parts, so that a server that compresses has something to do.
func bytesOf(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	var x uint64
	for i := range b {
		if i%64 == 0 {
			x = r.Uint64()
		}
		b[i] = byte(x >> (i % 8 * 8))
	}
	return b
}
