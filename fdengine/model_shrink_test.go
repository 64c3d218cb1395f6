package fdengine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// shrink looks for a smaller program that breaks the same promise: it leaves out callers, steps, faults and events
// one after the other for as long as the rest still fails in one of a few runs, or until the time is over.
func shrink(t *testing.T, p *program, res result, limit time.Duration) (*program, result) {
	until := time.Now().Add(limit)
	kind, _, _ := strings.Cut(res.bad[0], ":")
	fails := func(q *program) (result, bool) {
		for range 4 {
			r := execute(t, q)
			if slices.ContainsFunc(r.bad, func(s string) bool { return strings.HasPrefix(s, kind+":") }) {
				return r, true
			}
		}
		return result{}, false
	}
	for changed := true; changed; {
		changed = false
		for n := 0; time.Now().Before(until); n++ {
			q, more := p.without(n)
			if !more {
				break
			}
			if q == nil {
				continue
			}
			if r, ok := fails(q); ok {
				p, res, changed = q, r, true
				n-- // what was n+1 is n now
			}
		}
	}
	return p, res
}

// without returns p less its n-th part, nil when there is nothing to that part; false when p has no more parts.
func (p *program) without(n int) (*program, bool) {
	q := *p
	q.callers = slices.Clone(p.callers)
	part := func(count int) (at int, here bool) {
		if n < count {
			return n, true
		}
		n -= count
		return 0, false
	}
	if i, ok := part(len(q.callers)); ok {
		q.callers = slices.Delete(q.callers, i, i+1)
		return &q, true
	}
	for c := range q.callers {
		if i, ok := part(len(q.callers[c].steps)); ok {
			q.callers[c].steps = slices.Delete(slices.Clone(q.callers[c].steps), i, i+1)
			return &q, true
		}
	}
	if i, ok := part(len(q.events)); ok {
		q.events = slices.Delete(slices.Clone(q.events), i, i+1)
		return &q, true
	}
	if i, ok := part(len(q.dials)); ok {
		q.dials = slices.Clone(q.dials)
		q.dials[i] = dialFault{}
		if p.dials[i].name == "" {
			return nil, true
		}
		return &q, true
	}
	if i, ok := part(len(q.leases)); ok {
		q.leases = maps.Clone(q.leases)
		delete(q.leases, slices.Sorted(keys(q.leases))[i])
		return &q, true
	}
	if i, ok := part(len(q.putFail)); ok {
		q.putFail = maps.Clone(q.putFail)
		delete(q.putFail, slices.Sorted(keys(q.putFail))[i])
		return &q, true
	}
	for c := range q.callers {
		for s := range q.callers[c].steps {
			st := q.callers[c].steps[s]
			if i, ok := part(len(st.cmds)); ok {
				q.callers[c].steps = slices.Clone(q.callers[c].steps)
				if q.callers[c].steps[s].cmds = st.simpler(i); q.callers[c].steps[s].cmds == nil {
					return nil, true
				}
				return &q, true
			}
		}
	}
	return nil, false
}

// simpler is the commands of s with the i-th left out, or, when it is the only one, stripped of something special;
// nil when it has nothing special.
func (s step) simpler(i int) []*plan {
	cmds := slices.Clone(s.cmds)
	if len(cmds) > 1 {
		return slices.Delete(cmds, i, i+1)
	}
	pl := *cmds[i]
	switch {
	case len(pl.acts) > 0:
		pl.acts = pl.acts[:len(pl.acts)-1]
	case pl.size > 0:
		pl.size = 0
	case pl.timeout > 0:
		pl.timeout = 0
	case pl.done != doneTells:
		pl.done, pl.child = doneTells, nil
	case pl.decode != faultNone:
		pl.decode = faultNone
	case pl.judge != judgeNot:
		pl.judge = judgeNot
	case pl.shape == asking || pl.shape == double:
		pl.shape = plain
	default:
		return nil
	}
	cmds[i] = &pl
	return cmds
}
