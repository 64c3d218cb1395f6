package carry

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

func mapsKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

func (b *bench) stream(name string) *Stream[string] {
	if b.streams[name] == nil {
		b.streams[name] = new(Stream[string])
	}
	return b.streams[name]
}

// append submits a request that is its name, filled up with dots and ended by a semicolon.
func (b *bench) append(r Record[string], name string, size int) {
	enc := name + strings.Repeat(".", max(size-len(name)-1, 0)) + ";"
	r.Owner = name
	b.tickets[name] = new(Ticket[string])
	r.Attach(b.tickets[name])
	if s := r.Stream; s != nil && s.Broken() {
		b.printf("%s: refused, the stream is broken", name)
		return
	}
	if b.l.Append(&r, []byte(enc)) {
		b.printf("%s is a block of its own", name)
	}
}

// name returns what the encoded request says it is, with its prefix.
func name(enc []byte) string { return strings.TrimRight(string(enc), ".;") }

func (b *bench) claim(cmds, bytes int, alone bool) {
	s, ok := b.l.Claim(cmds, bytes, alone)
	if !ok {
		b.printf("nothing to claim")
		return
	}
	b.span, b.wrote = s, 0
	all := strings.Split(strings.TrimSuffix(string(slices.Concat(s.Parts(nil, 0)...)), ";"), ";")
	require.Len(b.t, all, s.Commands, "whole records only")
	for i := range all {
		all[i] = name([]byte(all[i]))
	}
	if len(all) > 12 {
		all = append(append(all[:6:6], "..."), all[len(all)-3:]...)
	}
	b.printf("%d of %d bytes: %s", s.Commands, s.Size, strings.Join(all, " "))
}

// answer is the reader with one reply.
func (b *bench) answer(how string, opt map[string]string, has func(string) bool, due int64) {
	r := b.chunk.Peek()
	for r != nil && r.NoReply() {
		if r.Decide() {
			b.printf("%s: sent", r.Owner)
			r.Settle()
		}
		b.chunk.Take()
		r = b.chunk.Peek()
	}
	if r == nil {
		b.printf("a reply nobody waits for")
		return
	}
	enc := b.chunk.Encoded(r)
	who := name(enc)
	defer b.chunk.Take()
	switch {
	case !r.Decide():
		b.printf("%s: a ghost's", who)
		switch {
		case !r.Held():
		case how == "refuse":
			b.l.GhostRefused(r, due)
		default:
			b.l.Executed(r, b.told)
		}
	case how == "reply":
		b.printf("%s: answered", who)
		if r.Held() {
			b.l.Executed(r, b.told)
		}
		r.Settle()
	case how == "redirect":
		r.Refused(false)
		w, ok := b.l.Leave(r, enc)
		require.True(b.t, ok)
		frames := 0
		if opt["prefix"] != "" {
			frames = 1
		}
		w.Redirect([]byte(opt["prefix"]), frames)
		b.printf("%s: goes as %s, %d replies, %d skipped, hop %d", who, name(w.Enc), w.Rec.Frames, w.Rec.Skip, w.Rec.Hops())
		b.l.Splice([]Away[string]{w})
	default:
		r.Refused(has("ran"))
		if r.Spent() {
			b.printf("%s: budget, %v, sends %d", who, r.Fate(false), r.Sends())
			r.Settle()
			b.l.Break(r, b.told)
			return
		}
		if has("leaving") {
			require.False(b.t, b.tickets[who].Withdraw().Won)
		}
		ok, left := b.l.Refuse(r, enc, []byte("refusal of "+who), due, b.told)
		switch {
		case left:
			b.printf("%s: left at its refusal", who)
		case ok:
			b.printf("%s: goes again", who)
		default:
			b.printf("%s: answered by its refusal", who)
			r.Settle()
		}
	}
}

// chain prints the blocks: the names in each, | where acked is and ^ where published is.
func (b *bench) chain() {
	l := &b.l
	for k := l.head; k != nil; k = k.next {
		s := "block:"
		if k.back == 0 && k.n > 0 {
			s = "block of what came back:"
		}
		for i := 0; i <= k.n; i++ {
			if k == l.at && i == l.ack {
				s += " |"
			}
			if k == l.cur && i == l.pub {
				s += " ^"
			}
			switch {
			case i == k.n:
			case k.recs[i].live():
				s += " " + name(k.bytes(&k.recs[i]))
			default:
				s += " (" + name(k.bytes(&k.recs[i])) + ")"
			}
		}
		if len(s) > 200 {
			s = s[:90] + " ... " + s[len(s)-40:]
		}
		b.out = append(b.out, s)
	}
	if l.head == nil {
		b.printf("no block")
	}
}
