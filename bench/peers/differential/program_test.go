package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// op is one command: its arguments, of the types string, []byte, int64, uint64 and float64, and how its reply is
// compared.
type op struct {
	args  []any
	shape shape
	raw   bool // the bytes of the reply, in place of what they mean
}

// String shows the command for a report.
func (o *op) String() string {
	out := make([]string, len(o.args))
	for i, a := range o.args {
		switch a := a.(type) {
		case []byte:
			out[i] = quote(string(a))
		case string:
			out[i] = quote(a)
		default:
			out[i] = fmt.Sprint(a)
		}
	}
	return strings.Join(out, " ")
}

// manner is how a piece of a program is given to the library.
type manner uint8

const (
	submit   manner = iota // one after another, without waiting
	stream                 // the same through a Stream
	batch                  // DoBatch
	all                    // SubmitAll
	do                     // Do, one at a time
	tx                     // a transaction; one piece for the other client too
	blocking               // commands that may block, on a lent connection
	script                 // EvalScript, and what the other client has for that
)

// piece is commands that go the same way.
type piece struct {
	manner manner
	ops    []op
	first  int // index of the first command in its program
}

// program is the commands of one caller, who has keys of his own, so that his replies depend on nobody else's
// commands.
type program struct {
	caller int
	pieces []piece
	size   int
}

// writer makes a program. Two writers of the same seed and caller write the same.
type writer struct {
	*rand.Rand
	caller int
	resp   int // version of the protocol
	ids    int // of stream entries
	used   map[string]int
}

// write makes a program of n commands.
func write(seed uint64, caller, version, n int, used map[string]int) *program {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, uint64(caller))), caller: caller, resp: version, used: used}
	p := &program{caller: caller}
	for p.size < n {
		pc := w.piece(n - p.size)
		pc.first = p.size
		p.size += len(pc.ops)
		p.pieces = append(p.pieces, pc)
	}
	return p
}

func (w *writer) piece(room int) piece {
	switch n := w.IntN(40); {
	case n < 3:
		return w.each(blocking, blockingRows, 1+w.IntN(min(6, room)))
	case n < 5:
		return w.each(script, []row{evalRow}, 1+w.IntN(min(6, room)))
	case n < 10:
		return w.fill(tx, 1+w.IntN(min(10, room)))
	case n < 13:
		return w.fill(do, 1+w.IntN(min(5, room)))
	case n < 17:
		return w.fill(all, 1+w.IntN(min(100, room)))
	case n < 23:
		return w.fill(batch, 1+w.IntN(min(200, room)))
	case n < 30:
		return w.fill(stream, 1+w.IntN(min(300, room)))
	}
	return w.fill(submit, 1+w.IntN(min(300, room)))
}

// fill makes a piece of n commands of any family.
func (w *writer) fill(m manner, n int) piece {
	pc := piece{manner: m, ops: make([]op, n)}
	for i := range pc.ops {
		pc.ops[i] = w.from(families[w.IntN(len(families))])
		if m == tx {
			pc.ops[i].raw = false // a reply inside that of EXEC
		}
	}
	return pc
}

// each makes a piece of n commands of the same rows.
func (w *writer) each(m manner, rows []row, n int) piece {
	pc := piece{manner: m, ops: make([]op, n)}
	for i := range pc.ops {
		pc.ops[i] = w.from(rows)
		if m == script {
			pc.ops[i].raw = false // EvalScript gives meanings
		}
	}
	return pc
}

// row is one kind of command: words that stay, and in small letters words that stand for something random.
type row struct {
	text  string
	shape shape
	kept  bool // its arguments are not spoilt: that could make the reply depend on chance
	noRaw bool // the other client does not give the bytes of such a reply as they are
}

// from makes a command of one of the rows.
func (w *writer) from(rows []row) op {
	r := rows[w.IntN(len(rows))]
	w.used[r.text]++
	o := op{args: w.expand(r.text), shape: r.shape}
	if !r.kept && w.IntN(40) == 0 {
		w.spoil(&o)
	}
	if name := o.args[0].(string); w.IntN(30) == 0 {
		o.args[0] = strings.ToLower(name)
	}
	o.raw = r.shape == exact && !r.noRaw && w.IntN(2) == 0
	return o
}

// spoil makes a command that the server should refuse, or understand in another way.
func (w *writer) spoil(o *op) {
	junk := []any{"", "abc", int64(-1), "9999999999999999999", "1e400", "\x00\xff\r\n", "-", "0x10", " 7", 0.5}
	switch n := len(o.args); {
	case w.IntN(3) == 0 && n > 1:
		o.args = o.args[:1+w.IntN(n-1)]
	case w.IntN(3) == 0:
		o.args = append(o.args, junk[w.IntN(len(junk))])
	case n > 2:
		if i := 2 + w.IntN(n-2); !w.owns(o.args[i]) {
			o.args[i] = junk[w.IntN(len(junk))]
		}
	}
}

// owns says whether an argument is a key of the caller's: in its place must be no other, that all callers share.
func (w *writer) owns(arg any) bool {
	s, ok := arg.(string)
	if b, is := arg.([]byte); is {
		s, ok = string(b[:min(len(b), 20)]), true
	}
	return ok && strings.HasPrefix(s, fmt.Sprintf("%d:", w.caller))
}

// expand replaces the words of a row. [a|b c|] is one of the parts between the bars; a word with dots behind it comes
// one to six times, and so do words joined by commas, in turn.
func (w *writer) expand(text string) []any {
	var out []any
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if rest, ok := strings.CutPrefix(text, "["); ok {
			inside, after, _ := strings.Cut(rest, "]")
			parts := strings.Split(inside, "|")
			out = append(out, w.expand(parts[w.IntN(len(parts))])...)
			text = after
			continue
		}
		word, after, _ := strings.Cut(text, " ")
		text = after
		if group, ok := strings.CutSuffix(word, "..."); ok {
			for range 1 + w.IntN(6) {
				for each := range strings.SplitSeq(group, ",") {
					out = append(out, w.word(each))
				}
			}
			continue
		}
		out = append(out, w.word(word))
	}
	return out
}
