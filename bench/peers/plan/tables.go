// Package plan says what a run measures and what its numbers must show: the tables, which contenders are in each,
// and the bars, each a ratio with a limit and a goal. It computes; it starts nothing and measures nothing.
package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
)

// Again is the second row of the engine, against which the first shows the noise.
const Again = "fullduplex again"

const (
	ours    = "fullduplex"
	oursRaw = "fullduplex raw"
	oursPut = "fullduplex put"
	rawRow  = "raw limit"
	rawPut  = "raw puts"
	unyield = "fullduplex without yields"

	replayed = 1_000_000
)

// Size says how long and how often is measured.
type Size struct {
	Cell   time.Duration // the measured part of one cell
	Rounds int           // of each row
	Pairs  int           // of the rows whose tail latencies are compared pair by pair
}

// Validate returns what is wrong with s.
func (s Size) Validate() error {
	switch {
	case s.Cell < 50*time.Millisecond || s.Cell > time.Minute:
		return fmt.Errorf("plan: a cell of %v, it must be 50ms to 1m", s.Cell)
	case s.Rounds < 1 || s.Rounds > 99:
		return fmt.Errorf("plan: %d rounds, there must be 1 to 99", s.Rounds)
	case s.Pairs < 1 || s.Pairs > 99:
		return fmt.Errorf("plan: %d pairs, there must be 1 to 99", s.Pairs)
	}
	return nil
}

// callers of the blocking tables.
var callers = []int{1, 16, 64, 256, 1024, 8192}

// windows of the asynchronous tables; 4096 is the one that is compared.
var windows = []int{1_000, 4096, 10_000, 100_000, 1_000_000}

// Tables lists all tables with their rows, nothing measured yet.
func Tables(s Size) []Table {
	warm := s.Cell / 4
	cell := func(f load.Face) load.Spec { return load.Spec{Face: f, Warm: warm, Length: s.Cell} }
	var out []Table
	for _, n := range callers {
		c := cell(load.Blocking)
		c.Callers = n
		t := Table{ID: id("blocking", n), Title: fmt.Sprintf("Blocking, %d callers, null server", n), Server: "null", Cell: c}
		t.fill(s, isRESP)
		if slices.Contains([]int{64, 1024, 8192}, n) {
			t.tails(s)
		}
		out = append(out, t)
	}
	c := cell(load.Batch)
	c.Callers, c.Size = 16, 100
	t := Table{ID: "batch", Title: "Batches of 100 from 16 callers, null server", Server: "null", Cell: c}
	t.fill(s, func(c contend.Contender) bool { return isRESP(c) })
	out = append(out, t)
	for _, n := range windows {
		c := cell(load.Async)
		c.Window = n
		t := Table{ID: id("async", n), Title: fmt.Sprintf("Asynchronous, %d under way, null server", n), Server: "null", Cell: c}
		t.fill(s, func(c contend.Contender) bool {
			if n != 4096 {
				return c.Name == oursRaw || c.Group == contend.Limit && isRESP(c)
			}
			return c.Group != contend.Peer && isRESP(c) || c.Name == "go-redis auto" || c.Name == "go-redis duplex"
		})
		out = append(out, t)
	}
	for _, n := range []int{256, 1024} {
		c := cell(load.Blocking)
		c.Callers = n
		t := Table{ID: id("redis", n), Title: fmt.Sprintf("Blocking, %d callers, redis-server", n), Server: "redis", Cell: c}
		t.fill(s, isRESP)
		out = append(out, t)
	}
	c = cell(load.Blocking)
	c.Callers = 64
	t = Table{ID: "put", Title: "put of 200 bytes, 64 callers, beanstalkd", Server: "beanstalkd", Cell: c}
	t.fill(s, func(c contend.Contender) bool { return c.Server == "beanstalkd" || c.NoIO })
	out = append(out, t)
	for _, n := range []int{1, 64} {
		c := cell(load.Blocking)
		c.Callers, c.Spinners = n, -1
		t := Table{ID: id("starved", n), Title: fmt.Sprintf("Blocking, %d callers, beside goroutines that use all CPUs but one", n), Server: "null", Cell: c}
		t.Rows = []Row{
			{Label: ours, Contender: ours, Rounds: s.Pairs},
			{Label: unyield, Contender: ours, Unyield: true, Rounds: s.Pairs},
			{Label: Again, Contender: ours, Rounds: s.Pairs},
		}
		t.limits(s)
		out = append(out, t)
	}
	c = cell(load.Replay)
	c.Window = replayed
	return append(out, Table{
		ID: "replay", Title: "Sending 1,000,000 unanswered commands again after a cut, null server", Server: "null", Cell: c,
		Rows: []Row{{Label: oursRaw, Contender: oursRaw, Rounds: s.Rounds}},
	})
}

func id(kind string, n int) string { return fmt.Sprintf("%s.%d", kind, n) }

func isRESP(c contend.Contender) bool { return c.Server != "beanstalkd" }

// fill adds a row for each contender that fits.
func (t *Table) fill(s Size, fit func(contend.Contender) bool) {
	for _, c := range contend.All() {
		if !fit(c) {
			continue
		}
		rounds := s.Rounds
		if c.NoIO {
			rounds = 1 // the machine's own noise is small there
		}
		t.Rows = append(t.Rows, Row{Label: c.Name, Contender: c.Name, Rounds: rounds})
	}
}

// limits adds the rows of the limits.
func (t *Table) limits(s Size) {
	t.fill(s, func(c contend.Contender) bool { return c.Group == contend.Limit && isRESP(c) })
}

// tails makes the rows whose tail latencies are compared pair by pair longer, and adds the engine against itself.
func (t *Table) tails(s Size) {
	for i, r := range t.Rows {
		if c, err := contend.Find(r.Contender); err == nil && (r.Label == ours || c.Group == contend.Peer && c.Default) {
			t.Rows[i].Rounds = max(s.Rounds, s.Pairs)
		}
	}
	t.Rows = append(t.Rows, Row{Label: Again, Contender: ours, Rounds: max(s.Rounds, s.Pairs)})
}
