package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// minPayload has room for the number of a job.
const minPayload = 40

// generator is an input of made-up jobs. One goroutine.
type generator struct {
	left int64
	n    int64
	end  time.Time // zero: none
	own  bool
	run  string // makes the ids those of this run
	size int
	buf  bytes.Buffer
}

func newGenerator(jobs int64, size int, own bool) *generator {
	return &generator{left: jobs, size: size, own: own, run: strconv.FormatInt(time.Now().UnixNano(), 36)}
}

// until makes the jobs end at a time, whatever their number.
func (g *generator) until(end time.Time) { g.left, g.end = math.MaxInt64, end }

// Read implements io.Reader.
func (g *generator) Read(p []byte) (int, error) {
	if g.buf.Len() == 0 {
		if !g.end.IsZero() && !time.Now().Before(g.end) {
			g.left = 0
		}
		for i := 0; i < 64 && g.left > 0; i++ {
			g.line()
			g.left--
		}
		if g.buf.Len() == 0 {
			return 0, io.EOF
		}
	}
	return g.buf.Read(p)
}

// line writes one job of exactly size bytes.
func (g *generator) line() {
	g.n++
	if g.own {
		fmt.Fprintf(&g.buf, `{"id":"bench-%s-%d","queue":"bench","payload":`, g.run, g.n)
	}
	at := g.buf.Len()
	fmt.Fprintf(&g.buf, `{"n":%d,"pad":"`, g.n)
	for g.buf.Len()-at < g.size-2 {
		g.buf.WriteByte('x')
	}
	g.buf.WriteString(`"}`)
	if g.own {
		g.buf.WriteByte('}')
	}
	g.buf.WriteByte('\n')
}
