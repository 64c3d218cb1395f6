package target

import (
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

// page reads one piece of a stream. Reading again does no harm.
type page struct {
	request []byte
	found   func(id, queue, payload []byte) // nil: only last is wanted
	entries int
	last    string // id of the last entry, unchanged when there is none
}

// forward asks for up to count entries behind the entry after.
func (p *page) forward(stream, after string, count int) {
	r := resp.AppendArrayHeader(p.request[:0], 6)
	for _, s := range []string{"XRANGE", stream, "(" + after, "+", "COUNT"} {
		r = resp.AppendBulkString(r, s)
	}
	p.request = resp.AppendBulkInt(r, int64(count))
}

// newest asks for the last entry.
func (p *page) newest(stream string) {
	r := resp.AppendArrayHeader(p.request[:0], 6)
	for _, s := range []string{"XREVRANGE", stream, "+", "-", "COUNT", "1"} {
		r = resp.AppendBulkString(r, s)
	}
	p.request = r
}

// Spec implements fdengine.Speccer.
func (p *page) Spec() fdengine.Spec { return fdengine.Spec{Class: carry.Replay} }

// AppendRequest implements fdengine.Command.
func (p *page) AppendRequest(dst []byte) ([]byte, error) { return append(dst, p.request...), nil }

// DecodeReply implements fdengine.Command.
func (p *page) DecodeReply(reply fdengine.Reply) error {
	if err := refusal(reply.Frame); err != nil {
		return err
	}
	r := resp.NewReader(reply.Frame)
	n, err := r.Array()
	if err != nil {
		return err
	}
	p.entries = n
	var at []byte
	for range n {
		if at, err = p.entry(&r); err != nil {
			return err
		}
	}
	if n > 0 {
		p.last = string(at)
	}
	return nil
}

// entry reads one entry, its id and a flat list of names and values, and returns the id. An entry that is no job of ours is shown
// with empty parts.
func (p *page) entry(r *resp.Reader) (at []byte, err error) {
	if n, err := r.Array(); err != nil || n != 2 {
		return nil, errors.Join(fmt.Errorf("stream entry of %d parts", n), err)
	}
	if at, err = r.Bytes(); err != nil {
		return nil, err
	}
	fields, err := r.Array()
	if err != nil {
		return nil, err
	}
	var id, queue, payload []byte
	for range fields / 2 {
		name, err := r.Bytes()
		if err != nil {
			return nil, err
		}
		value, err := r.Bytes()
		if err != nil {
			return nil, err
		}
		switch string(name) {
		case "id":
			id = value
		case "queue":
			queue = value
		case "payload":
			payload = value
		}
	}
	if p.found != nil {
		p.found(id, queue, payload)
	}
	return at, nil
}
