package target

import (
	"errors"
	"fmt"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

// page reads one piece of a stream. Reading again does no harm.
type page struct {
	patient
	found   func(id, queue, payload []byte) // nil: only last is wanted
	entries int
	bytes   int    // of the reply
	last    string // id of the last entry, unchanged when there is none
}

// forward asks for up to count entries behind the entry after.
func (p *page) forward(stream, after string, count int) {
	p.calm(p.bound)
	p.Reset("XRANGE").Arg(stream).Arg("(" + after).Arg("+").Arg("COUNT").ArgInt(int64(count))
}

// nextCount is how many entries of the size of the last ones make a page.
func (p *page) nextCount() int { return pageOf(p.entries, p.bytes) }

// pageOf is how many entries make a page when some had that many bytes.
func pageOf(entries, bytes int) int {
	return min(max(1, pageBytes/(bytes/max(1, entries)+1)), mostPage)
}

// newest asks for the last entry.
func (p *page) newest(stream string) {
	p.Reset("XREVRANGE").Arg(stream).Arg("+").Arg("-").Arg("COUNT").ArgInt(1)
}

// DecodeReply implements fdengine.Command. The frame is walked where it lies: it may be large.
func (p *page) DecodeReply(reply fdengine.Reply) error {
	r := resp.NewReader(reply.Frame)
	if t := r.Type(); t == resp.TypeError || t == resp.TypeBulkError {
		return p.Cmd.DecodeReply(reply)
	}
	n, err := r.Array()
	if err != nil {
		return err
	}
	p.entries, p.bytes = n, len(reply.Frame)
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
