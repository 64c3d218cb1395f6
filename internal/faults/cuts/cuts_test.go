package cuts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// manner is how a connection ends.
type manner struct {
	how   memnet.Cut
	vague bool
	read  int
}

// manners are: what was sent arrives and then the end; all that was not read is lost; the same with a server that
// reads slowly; and a connection that cannot say how far a failed write came.
func manners() []manner {
	return []manner{
		{},
		{how: memnet.Cut{Reset: true, Drop: true}},
		{how: memnet.Cut{Reset: true, Drop: true}, read: 16},
		{vague: true},
	}
}

// sweep tells the stories of all offsets: in the full count for each variant and manner. In the short one each offset
// has one variant and manner, in turn, and those at the ends of records have all variants; of the handshake's it has
// every third.
func sweep(t *testing.T, k kit, of side) {
	sizeOf := measured(t, k)
	one := func(v variant, at, manner int) {
		m := manners()[manner]
		p := plan{variant: v, cut: cut{of, at}, how: m.how, vague: m.vague && of == requests, read: m.read}
		judgeExactly(t, tell(t, k, p), sizeOf(v))
	}
	for i := range variants {
		z := sizeOf(variantOf(i))
		if tally.Full() {
			for at := 0; at <= z.last(of); at++ {
				for m := range manners() {
					one(variantOf(i), at, m)
				}
			}
			continue
		}
		for n, end := range z.ends(of) {
			for _, at := range []int{end - 1, end} {
				one(variantOf(i), at, (i+n)%len(manners()))
			}
		}
	}
	step := 1
	if of == setup {
		step = 3
	}
	for at := 0; !tally.Full() && at <= sizeOf(variantOf(0)).last(of); at += step {
		one(variantOf(at/len(manners())%variants), at, at%len(manners()))
	}
}

func each(t *testing.T, f func(t *testing.T, k kit)) {
	for _, k := range kits() {
		t.Run(k.name, func(t *testing.T) { f(t, k) })
	}
}

// Covers: A-7, E-4, E-5, E-9, E-18, E-41, C04
func TestAPipelineCutAtAnyByteOfItsRequestsEndsAsItsClassesSay(t *testing.T) {
	each(t, func(t *testing.T, k kit) { sweep(t, k, requests) })
}

// Covers: A-7, E-1, E-4, E-5, E-18, S0-30, C18
func TestAPipelineCutAtAnyByteOfItsRepliesEndsAsItsClassesSay(t *testing.T) {
	each(t, func(t *testing.T, k kit) { sweep(t, k, responses) })
}

// Covers: A-7, C09
func TestACutAtAnyByteOfAHandshakeCostsNoCommandAnything(t *testing.T) {
	each(t, func(t *testing.T, k kit) { sweep(t, k, setup) })
}

// Covers: A-7, E-6
func TestTwoConnectionsCutOneAfterTheOtherKeepEveryPromise(t *testing.T) {
	each(t, func(t *testing.T, k kit) {
		r, sizeOf := tally.Rand(uint64(len(k.name))), measured(t, k)
		for i := range tally.Count(40, 5000) {
			v := variantOf(i % variants)
			z := sizeOf(v)
			m := manners()[r.IntN(4)]
			p := plan{variant: v, how: m.how, vague: m.vague, read: m.read}
			switch r.IntN(3) {
			case 0:
				p.cut = cut{setup, r.IntN(z.hello + 1)}
			case 1:
				p.cut = cut{requests, r.IntN(z.requests + 1)}
			case 2:
				p.cut = cut{responses, r.IntN(z.responses + 1)}
			}
			if r.IntN(2) == 0 {
				p.second = cut{requests, r.IntN(z.hello + z.requests + 1)}
			} else {
				p.second = cut{responses, r.IntN(z.responses + 1)}
			}
			s := tell(t, k, p)
			judge(t, s)
			require.Greater(t, len(s.conns), 1)
		}
	})
}
