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
	ours       = "fullduplex"
	oursRaw    = "fullduplex raw"
	oursPut    = "fullduplex put"
	oursAsync  = "fullduplex asynchronous"
	oursSingle = "fullduplex asynchronous, one by one"
	rawRow     = "raw limit"
	wakeRow    = "wake floor"
	rawAsync   = "raw limit asynchronous"
	rawPut     = "raw puts"
	unyield    = "fullduplex without yields"

	batchTable   = "batch"
	windowsTable = "windows"
	replayRow    = "sent again"
	replayed     = 1_000_000
	asyncWindow  = 4096 // that is compared
)

// Size says how long and how often is measured.
type Size struct {
	Cell     time.Duration // the measured part of one cell
	Rounds   int           // of each row
	Compared int           // of the rows that bars compare, when more
	Pairs    int           // of the rows whose tail latencies are compared
	Extra    int           // of what is far, large or comes when it likes
}

// Validate returns what is wrong with s.
func (s Size) Validate() error {
	switch {
	case s.Cell < 50*time.Millisecond || s.Cell > time.Minute:
		return fmt.Errorf("plan: a cell of %v, it must be 50ms to 1m", s.Cell)
	}
	for _, n := range []int{s.Rounds, s.Compared, s.Pairs, s.Extra} {
		if n < 1 || n > 99 {
			return fmt.Errorf("plan: %d rounds, there must be 1 to 99", n)
		}
	}
	return nil
}

// callers of the blocking tables.
var callers = []int{1, 16, 64, 256, 1024, 8192}

// windows that must all cost the same.
var windows = []int{1_000, 10_000, 100_000, 1_000_000}

// underWay labels the row of one window.
func underWay(n int) string { return fmt.Sprintf("%d under way", n) }

func asynchronous(who string) string { return who + " asynchronous" }

// Tables lists all tables with their rows, nothing measured yet.
func Tables(s Size) []Table {
	var out []Table
	for _, n := range callers {
		out = append(out, blockingTable(s, n, "null"))
	}
	out = append(out, batches(s), windowTable(s), blockingTable(s, 256, "redis"), blockingTable(s, 1024, "redis"), puts(s),
		starvedTable(s, 1), starvedTable(s, 64), openLoop(s, "null"), openLoop(s, "redis"), farAway(s), largeValues(s), slowServer(s))
	return out
}

// cell is what is the same in most cells.
func cell(s Size, f load.Face) load.Spec { return load.Spec{Face: f, Warm: s.Cell / 4, Length: s.Cell} }

func blockingTable(s Size, n int, server string) Table {
	kind := map[string]string{"null": "blocking", "redis": "redis"}[server]
	t := Table{
		ID: id(kind, n), Title: fmt.Sprintf("Blocking, %d callers, %s", n, serverName(server)), Server: server,
		Cell: cell(s, load.Blocking), More: s.Compared,
	}
	t.Cell.Callers = n
	t.fill(s, isRESP)
	if server == "redis" {
		t.oneCPU(s)
	}
	if server == "null" && slices.Contains([]int{64, 1024, 8192}, n) {
		t.More = s.Pairs
		t.Rows = append(t.Rows, Row{Label: Again, Contender: ours, Rounds: s.Rounds})
	}
	return t
}

// oneCPU adds rows of a client that has one CPU (GOMAXPROCS=1) and leaves the other to the server, as two processes on two CPUs
// share them: the engine, the peers that gather longest before they write, and the wake floor.
func (t *Table) oneCPU(s Size) {
	c := t.Cell
	c.Procs = 1
	for _, who := range []string{ours, "rueidis 20us", "valkey-go 20us", wakeRow} {
		t.Rows = append(t.Rows, Row{Label: onOne(who), Contender: who, Rounds: s.Rounds, Cell: &c})
	}
}

// onOne labels the row of a client that has one CPU.
func onOne(who string) string { return who + ", one CPU" }

// batches has, beside the batches, what is given to a client without waiting.
func batches(s Size) Table {
	t := Table{
		ID: batchTable, Server: "null", Cell: cell(s, load.Batch), More: s.Compared,
		Title: fmt.Sprintf("Batches of 100 from 16 callers, and %d asynchronous, null server", asyncWindow),
	}
	t.Cell.Callers, t.Cell.Size = 16, 100
	t.fill(s, isRESP)
	async := cell(s, load.Async)
	async.Window = asyncWindow
	for _, who := range []string{ours, oursRaw, rawRow, "go-redis auto", "go-redis duplex"} {
		t.Rows = append(t.Rows, Row{Label: asynchronous(who), Contender: who, Rounds: s.Rounds, Cell: &async})
	}
	single := async
	single.Single = true
	t.Rows = append(t.Rows, Row{Label: oursSingle, Contender: ours, Rounds: s.Rounds, Cell: &single})
	return t
}

// windowTable has the same work with more and more under way, and what was under way when a connection was cut.
func windowTable(s Size) Table {
	t := Table{
		ID: windowsTable, Server: "null", More: s.Compared,
		Title: "Asynchronous with so many under way, and as many sent again after a cut, null server",
	}
	for _, n := range windows {
		c := cell(s, load.Async)
		c.Window = n
		t.Rows = append(t.Rows, Row{Label: underWay(n), Contender: oursRaw, Rounds: s.Rounds, Cell: &c})
	}
	c := cell(s, load.Replay)
	c.Window = replayed
	t.Rows = append(t.Rows, Row{Label: replayRow, Contender: oursRaw, Rounds: s.Rounds, Cell: &c})
	t.Cell = *t.Rows[0].Cell
	t.limits(s)
	return t
}

func puts(s Size) Table {
	t := Table{ID: "put", Title: "put of 200 bytes, 64 callers, beanstalkd", Server: "beanstalkd", Cell: cell(s, load.Blocking), More: s.Compared}
	t.Cell.Callers = 64
	t.fill(s, func(c contend.Contender) bool { return c.Server == "beanstalkd" || c.NoIO })
	return t
}

func starvedTable(s Size, n int) Table {
	t := Table{
		ID: id("starved", n), Server: "null", Cell: cell(s, load.Blocking), More: s.Pairs,
		Title: fmt.Sprintf("Blocking, %d callers, beside goroutines that use all CPUs but one, null server", n),
		Rows: []Row{
			{Label: ours, Contender: ours, Rounds: s.Rounds},
			{Label: unyield, Contender: ours, Unyield: true, Rounds: s.Rounds},
			{Label: Again, Contender: ours, Rounds: s.Rounds},
		},
	}
	t.Cell.Callers, t.Cell.Spinners = n, -1
	t.limits(s)
	return t
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
