package cuts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// sizes are the bytes of a story without a cut.
type sizes struct {
	hello, requests      int   // sent by the client: the handshake, the five
	helloBack, responses int   // and by the server, the handshake's included in responses
	records, replies     []int // of the five, in order
}

// last is the last offset at which that side can be cut.
func (z sizes) last(of side) int {
	return map[side]int{setup: z.hello, requests: z.requests, responses: z.responses}[of]
}

// ends are the offsets behind each of the five.
func (z sizes) ends(of side) (out []int) {
	at, each := 0, z.records
	switch of {
	case setup:
		return nil
	case responses:
		at, each = z.helloBack, z.replies
	}
	for _, n := range each {
		at += n
		out = append(out, at)
	}
	return out
}

// measure tells a story without a cut.
func measure(t *testing.T, k kit, v variant) (z sizes) {
	s := tell(t, k, plan{variant: v})
	judge(t, s)
	require.Len(t, s.conns, 1)
	c := s.conns[0]
	z.hello = c.hello
	ends := map[int]int{} // bytes received: bytes answered by then
	for _, m := range c.marks {
		ends[m.got] = m.back
	}
	z.helloBack = ends[z.hello]
	for _, c := range s.five {
		before := ends[z.hello+z.requests]
		z.requests += len(c.enc)
		z.records = append(z.records, len(c.enc))
		z.replies = append(z.replies, ends[z.hello+z.requests]-before)
	}
	z.responses = ends[z.hello+z.requests]
	return z
}

// measured is measure that remembers.
func measured(t *testing.T, k kit) func(v variant) sizes {
	known := map[variant]sizes{}
	return func(v variant) sizes {
		z, ok := known[v]
		if !ok {
			z = measure(t, k, v)
			known[v] = z
		}
		return z
	}
}
