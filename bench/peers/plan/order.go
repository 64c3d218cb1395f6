package plan

import (
	"slices"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// bestPeers is how many peers are compared for each bar, in a quick run and in the rounds beyond the common ones.
const bestPeers = 2

// compared are the labels of the rows of t that bars compare, those first that belong next to each other: the
// engine, then the best peers of each bar by what was measured in known. Without known there are no peers.
func (t *Table) compared(bars []Bar, known *Table) (out []string) {
	add := func(label string) {
		if !slices.Contains(out, label) && t.Row(label) != nil {
			out = append(out, label)
		}
	}
	for place := range bestPeers + 1 {
		for _, b := range bars {
			if !slices.Contains(b.Tables, t.ID) {
				continue
			}
			if place == 0 && len(b.own) > 0 {
				add(b.own[0])
			}
			if b.rank != nil && known != nil && place < bestPeers {
				if rows := b.rank(known); place < len(rows) {
					add(rows[place].Label)
				}
			}
			if place > 0 {
				for _, label := range b.own {
					add(label)
				}
			}
		}
	}
	return out
}

// beside puts the first of labels into the middle, the second before it, the third behind it, and so on: what comes
// early is measured next to the first.
func beside(labels []string) []string {
	var before, behind []string
	for i, l := range labels {
		if i%2 == 1 {
			before = append(before, l)
		} else {
			behind = append(behind, l)
		}
	}
	slices.Reverse(before)
	return append(before, behind...)
}

// Order lists the rows of t that take part in a round, in the order of their measurement. What bars compare comes
// without anything between, forwards in one round and backwards in the next; the others begin one further each time.
// earlier is a result from before, for the first round; it may be nil.
func (t *Table) Order(bars []Bar, earlier *Table, round int) []*Row {
	known := t
	if round == 0 {
		known = earlier
	}
	pack := beside(t.compared(bars, known))
	if t.grouped() {
		pack = nil // the groups are what belongs together
	}
	var others []*Row
	for i := range t.Rows {
		if !slices.Contains(pack, t.Rows[i].Label) {
			others = append(others, &t.Rows[i])
		}
	}
	if t.grouped() {
		others = byGroup(others, round)
	} else if n := len(others); n > 0 {
		others = slices.Concat(others[round%n:], others[:round%n])
	}
	var middle []*Row
	for _, l := range pack {
		middle = append(middle, t.Row(l))
	}
	if round%2 == 1 {
		slices.Reverse(middle)
	}
	return slices.DeleteFunc(append(others, middle...), func(r *Row) bool { return r.Rounds <= round })
}

func (t *Table) grouped() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Group != 0 })
}

// byGroup keeps the groups in their order and turns each round inside them.
func byGroup(rows []*Row, round int) []*Row {
	slices.SortStableFunc(rows, func(a, b *Row) int { return a.Group - b.Group })
	for from := 0; from < len(rows); {
		to := from
		for to < len(rows) && rows[to].Group == rows[from].Group {
			to++
		}
		if part := rows[from:to]; round%2 == 1 {
			slices.Reverse(part)
		}
		from = to
	}
	return rows
}

// Extend gives the rows that bars compare the rounds that t has for them beyond the common ones. It is called once,
// when all rows have had theirs: a row that began later could not be compared round by round.
func (t *Table) Extend(bars []Bar) {
	for _, label := range t.compared(bars, t) {
		r := t.Row(label)
		c, err := contend.Find(r.Contender)
		if err == nil && !c.NoIO && len(r.Results) == r.Rounds {
			r.Rounds = max(r.Rounds, t.More)
		}
	}
}

// Common is how many rounds all rows take.
func (t *Table) Common() (n int) {
	for _, r := range t.Rows {
		n = max(n, r.Rounds)
	}
	return n
}
