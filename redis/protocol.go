package redis

import (
	"errors"
	"net"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

// protocol frames and judges the replies of one session. It belongs to the reader of that session.
type protocol struct {
	scan     *resp.Scanner
	host     string    // of the server, for redirects that name only a port
	rows     []refusal // built at the first refusal
	answered bool      // a reply has been seen
}

// NewProtocol returns the framer and judge of one session with the server at addr, for Options.Protocol of an
// engine that is not made by New.
func NewProtocol(addr string) fdengine.Protocol { return newProtocol(addr, resp.Limits{}) }

func newProtocol(addr string, limits resp.Limits) *protocol {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = ""
	}
	return &protocol{scan: resp.NewScanner(limits), host: host}
}

var errMaxClients = errors.New("redis: the server refused the connection: " + maxClients)

// Next implements fdengine.Protocol. A server that is full answers the connection, not a command: its message
// as first reply ends the session and is paired with nothing.
func (p *protocol) Next(buf []byte) (n, need int, kind fdengine.Kind, err error) {
	n, need, k, err := p.scan.Next(buf)
	if err != nil {
		return 0, 0, 0, err
	}
	switch {
	case k == resp.Push:
		return n, need, fdengine.KindPush, nil // said also while it is not whole
	case n == 0:
		return 0, need, 0, nil
	case k == resp.Refusal:
		if !p.answered {
			if e := errorOf(buf[:n]); e != nil && e.Code == "ERR" && hasPrefixFold(e.Message, maxClients) {
				return 0, 0, 0, errMaxClients
			}
			p.answered = true
		}
		return n, 0, fdengine.KindRefusal, nil
	}
	p.answered = true
	return n, 0, fdengine.KindReply, nil
}

// Verdict implements fdengine.Protocol by the table in verdicts.go.
func (p *protocol) Verdict(frame []byte, maybe bool) fdengine.Verdict {
	e := errorOf(frame)
	if e == nil {
		return fdengine.Verdict{}
	}
	if p.rows == nil {
		p.rows = refusals()
	}
	return judge(e, p.host, p.rows, false)
}

// errorOf returns the error that a whole frame is, attributes aside; nil when it is no error.
func errorOf(frame []byte) *ServerError {
	if len(frame) > 0 {
		switch resp.Type(frame[0]) {
		case resp.TypeError, resp.TypeBulkError, resp.TypeAttribute:
			r := resp.NewReader(frame)
			var e resp.Error
			if _, err := r.Bytes(); errors.As(err, &e) {
				return newServerError(e)
			}
		}
	}
	return nil
}
