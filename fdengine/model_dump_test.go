package fdengine_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/carry"
)

// dump is the program for a human.
func (p *program) dump() string {
	var b strings.Builder
	o := p.opt
	fmt.Fprintf(&b, "seed %d: fenced %v, surplus %v, loose %v, heal %v\n", p.seed, p.fenced, p.surplus, p.loose, p.heal)
	fmt.Fprintf(&b, "  window %d/%d, queue %d/%d, read %v, write %v, ping %v, budget %d, backoff %v-%v, outage %v, refusals %d, redirects %d, "+
		"strict %v, idle %v, hold %v, max reply %d, max request %d, limiter %d, observer %v, reroute %d, push fails %d\n",
		o.Window, o.WindowBytes, o.Queue, o.QueueBytes, o.ReadTimeout, o.WriteTimeout, o.PingEvery, o.Budget, o.BackoffMin,
		o.BackoffMax, o.MaxOutage, o.MaxRefusals, o.MaxRedirects, o.StrictOrder, o.IdleRelease, o.MaxHold, o.MaxReply, o.MaxRequest,
		o.limiter, o.observer, o.reroute, o.pushFail)
	for i, c := range p.callers {
		fmt.Fprintf(&b, "  caller %d:\n", i)
		for _, s := range c.steps {
			fmt.Fprintf(&b, "    %s\n", s)
		}
	}
	for i, d := range p.dials {
		if d.name != "" {
			fmt.Fprintf(&b, "  dial %d: %s\n", i+1, d.name)
		}
	}
	for _, n := range slices.Sorted(keys(p.leases)) {
		fmt.Fprintf(&b, "  lease %d: %s\n", n, leaseNames[p.leases[n]])
	}
	for _, n := range slices.Sorted(keys(p.putFail)) {
		fmt.Fprintf(&b, "  put %d panics\n", n)
	}
	for _, e := range p.events {
		fmt.Fprintf(&b, "  at %v: %s\n", e.at, e.name)
	}
	for _, c := range p.closing {
		fmt.Fprintf(&b, "  close: at %v, shutdown %v within %v\n", c.at, c.shut, c.bound)
	}
	return b.String()
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (s step) String() string {
	text := opNames[s.op]
	if s.stream >= 0 {
		text += fmt.Sprintf(" stream %d", s.stream)
	}
	if s.wait > 0 {
		text = fmt.Sprintf("after %v %s", s.wait, text)
	}
	if s.ctx.how != stays {
		text += fmt.Sprintf(" [%s %v]", leaveNames[s.ctx.how], s.ctx.at)
	}
	for _, pl := range s.cmds {
		text += " " + pl.String()
	}
	return text
}

func (p *plan) String() string {
	words := []string{p.token, p.class.String()}
	add := func(ok bool, format string, args ...any) {
		if ok {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(p.class == carry.Replay, "budget %d", p.budget)
	add(p.shape != plain, "%s", [...]string{"", "no reply", "asking", "double"}[p.shape])
	add(p.timeout > 0, "timeout %v", p.timeout)
	add(p.size > 99, "%d bytes", p.size)
	add(p.encode != faultNone, "encoder %s", faultNames[p.encode])
	add(p.decode != faultNone, "decoder %s", faultNames[p.decode])
	add(p.judge != judgeNot, "%s x%d", judgeNames[p.judge], p.times)
	add(p.done != doneTells, "%s", doneNames[p.done])
	for _, a := range p.acts {
		add(true, "<%s>", a.name)
	}
	text := "(" + strings.Join(words, ", ") + ")"
	if p.child != nil {
		text += " then " + p.child.String()
	}
	return text
}

var modelTokens = regexp.MustCompile(`\b(?:c|health)\d+\b`)

// explain is the history of the commands that the violations name, and of their lanes.
func (w *world) explain(bad []string) string {
	var b strings.Builder
	named := map[string]bool{}
	for _, s := range bad {
		for _, tok := range modelTokens.FindAllString(s, -1) {
			named[tok] = true
		}
	}
	for _, r := range w.records {
		if named[r.plan.token] {
			fmt.Fprintf(&b, "%s\n  %s asked %v settled %v, accepted %v, left %v, told %d, rejected %v, sends %d maybe %v answer %q\n  err %v (%T)\n",
				r.plan, opNames[r.op], r.asked, r.settled, r.accepted, r.left, r.told, r.rejected, r.sends, r.maybe, r.answer, r.err, r.err)
		}
	}
	for i, c := range w.wires {
		log, _ := c.sent()
		fmt.Fprintf(&b, "wire %d (%d loans, exact %v, %d bytes out, %d in):", i, c.loans, c.exact, len(c.out), c.in)
		for _, s := range log {
			fmt.Fprintf(&b, " %s", firstOf(s.token, s.verb))
		}
		fmt.Fprintln(&b)
	}
	for i := range w.server.Conns() {
		for _, r := range w.server.Requests(i) {
			if named[r.Token()] {
				fmt.Fprintf(&b, "server %d.%d at %v: %s %s\n", i, r.Seq, r.At.Sub(w.start).Round(time.Microsecond), r.Verb(), r.Token())
			}
		}
	}
	fmt.Fprintf(&b, "executed: %v\nremoved: %v\nstats: %+v\n", w.server.Order(), w.leaser.Reasons(), w.Stats())
	return b.String()
}

func firstOf(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
