package state

import (
	"slices"
	"sort"
)

// Range is some lines in a row, both ends included.
type Range struct{ First, Last int64 }

// Set is line numbers, kept as ranges in rising order that neither overlap nor touch. The zero value is empty. It
// takes memory for each gap, not for each line. One goroutine at a time.
type Set struct{ r []Range }

// Add puts the lines first to last in; nothing when last is before first.
func (s *Set) Add(first, last int64) {
	if last < first {
		return
	}
	if n := len(s.r); n > 0 && s.r[n-1].Last == first-1 { // the usual case
		s.r[n-1].Last = last
		return
	}
	from := s.at(first - 1) // the first range that overlaps or touches
	to := from
	for to < len(s.r) && s.r[to].First <= last+1 {
		first, last = min(first, s.r[to].First), max(last, s.r[to].Last)
		to++
	}
	s.r = slices.Replace(s.r, from, to, Range{first, last})
}

// Remove takes line n out.
func (s *Set) Remove(n int64) {
	i := s.at(n)
	if i == len(s.r) || s.r[i].First > n {
		return
	}
	r := s.r[i]
	var rest []Range
	if r.First < n {
		rest = append(rest, Range{r.First, n - 1})
	}
	if n < r.Last {
		rest = append(rest, Range{n + 1, r.Last})
	}
	s.r = slices.Replace(s.r, i, i+1, rest...)
}

// Has says whether line n is in.
func (s *Set) Has(n int64) bool {
	i := s.at(n)
	return i < len(s.r) && s.r[i].First <= n
}

// at is the index of the first range that ends at line n or behind it.
func (s *Set) at(n int64) int {
	return sort.Search(len(s.r), func(i int) bool { return s.r[i].Last >= n })
}

// Count is how many lines are in.
func (s *Set) Count() (n int64) {
	for _, r := range s.r {
		n += r.Last - r.First + 1
	}
	return n
}

// Watermark is the last line of the unbroken row from line 1 on; 0 when line 1 is not in.
func (s *Set) Watermark() int64 {
	if len(s.r) == 0 || s.r[0].First > 1 {
		return 0
	}
	return s.r[0].Last
}

// Ranges are the lines, in rising order. They are the Set's own until it is changed.
func (s *Set) Ranges() []Range { return s.r }

// Clone is a copy that shares nothing.
func (s *Set) Clone() Set { return Set{slices.Clone(s.r)} }

func (s *Set) clear() { s.r = s.r[:0] }
