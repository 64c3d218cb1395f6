package beanstalkd

import (
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// protocol frames and judges the replies of one session. It belongs to the reader of that session.
type protocol struct{ scan *beanstalk.Scanner }

// NewProtocol returns the framer and judge of one session, for Options.Protocol of an engine that is not made by
// New. On such an engine a Put or Cmd that names a tube brings its `use`; see Options.ManyTubes for why all must, or
// none.
func NewProtocol() fdengine.Protocol {
	return &protocol{scan: beanstalk.NewScanner(beanstalk.Limits{})}
}

// Next implements fdengine.Protocol. The server sends nothing unasked.
func (p *protocol) Next(buf []byte) (n, need int, kind fdengine.Kind, err error) {
	n, need, k, err := p.scan.Next(buf)
	if k == beanstalk.KindRefusal {
		kind = fdengine.KindRefusal
	}
	return n, need, kind, err
}

// Verdict implements fdengine.Protocol by the table in verdicts.go.
func (p *protocol) Verdict(frame []byte, maybe bool) fdengine.Verdict {
	r, _, err := beanstalk.Parse(frame)
	if err != nil {
		return fdengine.Verdict{Conn: fdengine.Cut}
	}
	return judge(r.Word)
}
