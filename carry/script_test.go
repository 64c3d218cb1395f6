package carry

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the scripts print into testdata")

// A script is a file of scenarios. "== title" starts one, with an empty log; "# ..." is a remark; a line that starts
// with "> " is what the command before it printed; all others are commands, see bench.do.
//
// Covers: S4-5, S4-6, E-5, E-18, E-41, E-44
func TestScriptsPrintWhatTheyPrintedBefore(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

// play runs a file and returns it with the output of this run.
func play(t *testing.T, file string) string {
	var out strings.Builder
	b := newBench(t)
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "> ") {
			continue
		}
		out.WriteString(line)
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "=="):
			b = newBench(t)
			continue
		}
		b.out = nil
		b.do(line)
		for _, s := range b.out {
			out.WriteString("> " + s + "\n")
		}
		require.NoError(t, b.l.Check(), "after %q", line)
	}
	return out.String()
}

// bench is one log under a script, with what an engine keeps beside it: the span, the chunk, the tickets.
type bench struct {
	t       *testing.T
	l       Log[string]
	tickets map[string]*Ticket[string]
	streams map[string]*Stream[string]
	span    Span[string]
	wrote   int
	chunk   Chunk[string]
	reading bool
	out     []string
	gone    []Away[string]
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, tickets: map[string]*Ticket[string]{}, streams: map[string]*Stream[string]{}}
}

func (b *bench) printf(format string, args ...any) {
	b.out = append(b.out, fmt.Sprintf(format, args...))
}

func (b *bench) told(e End[string]) {
	line := fmt.Sprintf("%s: %s, %v, sends %d", e.Owner, whyNames[e.Why], e.Fate, e.Sends)
	if e.Why == WhySent {
		line = e.Owner + ": sent"
	}
	if e.Frame != nil {
		line += ", " + string(e.Frame)
	}
	b.out = append(b.out, line)
}

// do executes one command. Words with = are options, known by name; the first of the others is the command.
//
//	append NAME...    [stream=S] [replay] [budget=N] [frames=N] [by=T] [size=N]; all have tickets
//	claim             [cmds=N] [bytes=N] [alone]: prints what is to be written
//	written N|all     the kernel accepted so many bytes of the span, in all
//	reply [N]         the server answers
//	refuse            [ran] [due=T] [leaving]: the server refuses the oldest
//	withdraw NAME     its caller leaves
//	fail NAME         the sweeper ends it
//	expire T          the sweeper at that time
//	cut               [now=T] [strict] [alone]: the connection died
//	due T             those that wait come back
//	evict / splice    all that waits leaves the log / comes back
//	redirect          [prefix=S]: the oldest leaves by a redirect, and comes back with that prefix
//	begin / end       opens and closes the reader's chunk
//	reset S / trim / state / chain
func (b *bench) do(line string) {
	opt := map[string]string{}
	var args []string
	for _, word := range strings.Fields(line) {
		if k, v, ok := strings.Cut(word, "="); ok {
			opt[k] = v
		} else {
			args = append(args, word)
		}
	}
	num := func(key string, zero int) int {
		if opt[key] == "" {
			return zero
		}
		n, err := strconv.Atoi(opt[key])
		require.NoError(b.t, err, line)
		return n
	}
	has := func(word string) bool { return slices.Contains(args[1:], word) }
	at := func() int64 {
		n, err := strconv.Atoi(args[1])
		require.NoError(b.t, err, line)
		return int64(n)
	}
	switch args[0] {
	case "append":
		r := Record[string]{Budget: uint16(num("budget", 3)), Frames: uint16(num("frames", 1)), SettleBy: int64(num("by", 0))}
		if has("replay") {
			r.Class = Replay
		}
		if opt["stream"] != "" {
			r.Stream = b.stream(opt["stream"])
		}
		for _, name := range args[1:] {
			if name != "replay" {
				b.append(r, name, num("size", 0))
			}
		}
	case "claim":
		b.claim(num("cmds", 1000), num("bytes", 256<<10), has("alone"))
	case "written":
		if b.wrote = b.span.Size; args[1] != "all" {
			b.wrote = int(at())
		}
		b.l.Quiet(b.span, b.wrote, func(r *Record[string]) { b.printf("%s: sent", r.Owner); r.Owner = "" })
	case "reply", "refuse", "redirect":
		n := 1
		if args[0] == "reply" && len(args) > 1 {
			n = int(at())
		}
		opened := !b.reading
		if opened {
			b.l.Begin(&b.chunk)
		}
		for range n {
			b.answer(args[0], opt, has, int64(num("due", 0)))
		}
		if opened {
			b.l.End(&b.chunk)
		}
	case "begin":
		b.l.Begin(&b.chunk)
		b.reading = true
	case "end":
		b.l.End(&b.chunk)
		b.reading = false
	default:
		b.rest(args, has, at, int64(num("now", 0)))
	}
}

func (b *bench) rest(args []string, has func(string) bool, at func() int64, now int64) {
	switch args[0] {
	case "withdraw":
		w := b.tickets[args[1]].Withdraw()
		b.printf("won %v, %v, sends %d", w.Won, w.Fate, w.Sends)
		if w.Broke {
			b.l.Settle(func(*Record[string]) bool { return false }, WhyBroken, b.told)
		}
	case "fail":
		b.l.Settle(func(r *Record[string]) bool { return r.Owner == args[1] }, WhyAsked, b.told)
	case "expire":
		b.l.Settle(func(r *Record[string]) bool { return r.SettleBy != 0 && r.SettleBy <= at() }, WhyExpired, b.told)
	case "cut":
		d := Death[string]{Now: now, Last: b.span, Written: b.wrote, Strict: has("strict"), Alone: has("alone")}
		repeats, left := b.l.Cut(d, b.told)
		b.printf("repeats %d, left %v", repeats, left)
		b.span, b.wrote = Span[string]{}, 0
	case "due":
		b.printf("%d came back", b.l.Due(at()))
	case "evict":
		b.gone = b.l.Evict()
		for i := range b.gone {
			b.printf("%s left", name(b.gone[i].Enc))
		}
	case "splice":
		b.printf("%d came back", b.l.Splice(b.gone))
		b.gone = nil
	case "reset":
		b.stream(args[1]).Reset()
	case "trim":
		b.l.Trim()
	case "state":
		cmds, bytes := b.l.Held()
		flying, size := b.l.InFlight()
		b.printf("held %d commands, %d bytes; in flight %d, %d bytes; waiting %d", cmds, bytes, flying, size, b.l.Waiting())
		for _, n := range slices.Sorted(mapsKeys(b.streams)) {
			b.printf("stream %s: broken %v, held %v", n, b.streams[n].Broken(), b.streams[n].Held())
		}
	case "chain":
		b.chain()
	default:
		b.t.Fatalf("no such command: %v", args)
	}
}
