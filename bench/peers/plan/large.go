package plan

import (
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
)

// What is far, large, slow, or comes when it likes. These tables compare with the two best peers of the run only.

const (
	openTable  = "open"
	farTable   = "far"
	slowTable  = "slow"
	largeTable = "large"

	capacity  = "capacity"
	nearRow   = "no delay, window 65536"
	wayRow    = "the way itself, one command at a time"
	roundTrip = 20 * time.Millisecond
	slowPace  = 10_000_000 // bytes a second that the slow server reads
	sameShare = 0.5        // of what the slowest takes, offered to all
	openCalls = 1024       // goroutines that take arrivals
	largeCall = 16         // callers with large values
)

var (
	shares     = []int{10, 50, 90} // per cent of capacity
	farWindows = []int{128, 1024, 8192, 65536}
	sizes      = []int{1 << 10, 64 << 10, 1 << 20}
	slowSizes  = []int{1 << 10, 64 << 10}
)

// SlowPace is what the server named "slow" reads, in bytes per second.
func SlowPace() int { return slowPace }

func farRow(window int) string { return fmt.Sprintf("window %d", window) }
func slowRow(size int) string  { return "values of " + bytesName(size) }

// openRow labels a contender at a share of its capacity in per cent.
func openRow(who string, share int) string { return fmt.Sprintf("%s %d %%", who, share) }

func capacityRow(who string) string { return who + " " + capacity }

// sameRow labels a contender at the rate that all are offered.
func sameRow(who string) string { return who + " same rate" }

func offered(r *Row) int { return int(r.Offer.Share*100 + 0.5) }

func largeRow(who string, get bool, size int) string {
	name := "SET"
	if get {
		name = "GET"
	}
	return fmt.Sprintf("%s %s %s", who, name, bytesName(size))
}

func bytesName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func peersAnd(names ...string) (out []contend.Contender) {
	for _, c := range contend.All() {
		mine := c.Group == contend.Peer && c.Server == "resp"
		for _, n := range names {
			mine = mine || c.Name == n
		}
		if mine {
			out = append(out, c)
		}
	}
	return out
}

// openLoop has a row for what each contender takes and one for each share of that.
func openLoop(s Size, server string) Table {
	t := Table{
		ID: openTable + "." + server, Server: server, BestOf: map[string]string{"null": "blocking.1024", "redis": "redis.1024"}[server],
		Title: fmt.Sprintf("Arrivals that do not wait for each other, %d callers at most, %s", openCalls, serverName(server)),
		Cell:  load.Spec{Face: load.Open, Callers: openCalls, Warm: s.Cell / 2, Length: 2 * s.Cell},
	}
	short := t.Cell
	short.Warm, short.Length = s.Cell/4, s.Cell
	who := peersAnd(ours)
	for _, c := range who {
		t.Rows = append(t.Rows, Row{Label: capacityRow(c.Name), Contender: c.Name, Rounds: s.Extra, Cell: &short})
	}
	for i, share := range shares {
		for _, c := range who {
			t.Rows = append(t.Rows, Row{
				Label: openRow(c.Name, share), Contender: c.Name, Rounds: s.Extra, Group: i + 1,
				Offer: &Offer{float64(share) / 100, capacityRow(c.Name)},
			})
		}
		t.Rows = append(t.Rows, Row{
			Label: openRow("noop", share), Contender: "noop", Rounds: 1, Group: i + 1,
			Offer: &Offer{float64(share) / 100, capacityRow(ours)},
		})
	}
	for _, c := range append(who, contend.Contender{Name: "noop"}) {
		rounds := s.Extra
		if c.Name == "noop" {
			rounds = 1
		}
		t.Rows = append(t.Rows, Row{
			Label: sameRow(c.Name), Contender: c.Name, Rounds: rounds, Group: len(shares) + 1, Offer: &Offer{Share: sameShare},
		})
	}
	return t
}

func serverName(server string) string {
	if server == "redis" {
		return "redis-server"
	}
	return server + " server"
}

// farAway is the engine with several windows behind a delay, and once without.
func farAway(s Size) Table {
	t := Table{ID: farTable, Title: "Asynchronous, a round trip of 20 ms, null server", Server: "null"}
	add := func(label string, window int, delay time.Duration) {
		t.Rows = append(t.Rows, Row{
			Label: label, Contender: oursRaw, Rounds: s.Extra, Delay: delay, Proxy: true,
			// Twice as much as the window is offered, so that it is the window that holds it back.
			Cell: &load.Spec{Face: load.Async, Window: 2 * window, Engine: window, Warm: s.Cell / 2, Length: 2 * s.Cell},
		})
	}
	for _, n := range farWindows {
		add(farRow(n), n, roundTrip)
	}
	add(nearRow, farWindows[len(farWindows)-1], 0)
	t.Rows = append(t.Rows, Row{
		Label: wayRow, Contender: rawRow, Rounds: s.Extra, Delay: roundTrip, Proxy: true,
		Cell: &load.Spec{Face: load.Blocking, Callers: 1, Warm: s.Cell / 2, Length: 2 * s.Cell},
	})
	t.Cell = *t.Rows[0].Cell
	return t
}

// largeValues stores and reads values of several sizes.
func largeValues(s Size) Table {
	t := Table{
		ID: largeTable, Title: fmt.Sprintf("Large values, %d callers, null server", largeCall), Server: "null", BestOf: "blocking.64",
		Cell: load.Spec{Face: load.Blocking, Callers: largeCall, Warm: s.Cell / 4, Length: s.Cell},
	}
	group := 0
	for _, size := range sizes {
		for _, get := range []bool{false, true} {
			for _, c := range peersAnd(ours, rawRow) {
				cell := t.Cell
				cell.Value, cell.Get = size, get
				t.Rows = append(t.Rows, Row{Label: largeRow(c.Name, get, size), Contender: c.Name, Rounds: s.Extra, Cell: &cell, Group: group})
			}
			group++
		}
	}
	return t
}

// slowServer floods a server that reads slowly.
func slowServer(s Size) Table {
	t := Table{ID: slowTable, Title: fmt.Sprintf("More than a server takes, which reads %d MB/s", slowPace/1_000_000), Server: "slow"}
	for _, size := range slowSizes {
		t.Rows = append(t.Rows, Row{
			Label: slowRow(size), Contender: oursRaw, Rounds: 1,
			Cell: &load.Spec{Face: load.Flood, Value: size, Length: 2 * s.Cell},
		})
	}
	t.Cell = *t.Rows[0].Cell
	return t
}

// largeBars are those of the tables in this file.
func largeBars() (out []Bar) {
	for _, server := range []string{"null", "redis"} {
		for _, share := range shares {
			out = append(out, open(openTable+"."+server, server, share))
		}
		out = append(out, same(openTable+"."+server, server))
	}
	for _, n := range farWindows {
		if n == farWindows[len(farWindows)-1] {
			out = append(out, far(n, none, 0.9)) // what the CPUs allow beside a proxy is no limit of the window
		} else {
			out = append(out, far(n, 0.9, 0.95))
		}
	}
	for _, size := range sizes {
		for _, get := range []bool{false, true} {
			out = append(out, large(get, size))
		}
	}
	for _, size := range slowSizes {
		out = append(out, bounded(size))
	}
	return out
}

// large compares the CPU time for values of one size.
func large(get bool, size int) Bar {
	us := largeRow(ours, get, size)
	same := func(r *Row, c contend.Contender) bool { return r.Label == largeRow(c.Name, get, size) }
	name := "LARGE.set."
	if get {
		name = "LARGE.get."
	}
	return best(fmt.Sprintf("%s%d", name, size), largeTable, us, "CPU per op", CPU, false, same, none, 1)
}
