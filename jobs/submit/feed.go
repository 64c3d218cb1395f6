package submit

import (
	"errors"
	"io"
)

const (
	batchItems = 256
	batchBytes = 64 << 10
)

// item is one line that is a job, or is corrupt (err), or ended the stream (last).
type item struct {
	job  Job
	err  error
	last bool
}

// batch is some items and the bytes they point into.
type batch struct {
	items []item
	buf   []byte
}

// feed reads and parses on a goroutine of its own, so that parsing overlaps with submitting, and hands over
// batches. A batch goes out when it is full or when the input has nothing more at hand, so that a slow writer
// on the other side of a pipe sees each of its lines submitted at once. Two batches circulate.
type feed struct {
	out  chan *batch
	free chan *batch
	stop chan struct{}
}

func startFeed(in io.Reader, o Options) *feed {
	f := &feed{out: make(chan *batch), free: make(chan *batch, 2), stop: make(chan struct{})}
	f.free <- new(batch)
	f.free <- new(batch)
	go f.run(newLines(in, o.MaxLine), &parser{format: o.Format, prefix: o.IDPrefix, queue: []byte(o.Queue)}, o.FromLine)
	return f
}

func (f *feed) run(l *lines, p *parser, from int64) {
	defer close(f.out)
	for {
		var b *batch
		select {
		case b = <-f.free:
		case <-f.stop:
			return
		}
		b.items, b.buf = b.items[:0], b.buf[:0]
		more := true
		for more && len(b.items) < batchItems && len(b.buf) < batchBytes {
			more = b.read(l, p, from)
			if len(b.items) > 0 && !l.buffered() {
				break
			}
		}
		select {
		case f.out <- b:
		case <-f.stop:
			return
		}
		if !more {
			return
		}
	}
}

// read adds the next line to b, if it is a job or corrupt. false: the input has ended.
func (b *batch) read(l *lines, p *parser, from int64) bool {
	line, number, err := l.next()
	switch {
	case errors.Is(err, io.EOF):
		b.items = append(b.items, item{job: Job{Line: number}, last: true})
		return false
	case errors.Is(err, ErrLineTooLong):
		b.items = append(b.items, item{job: Job{Line: number}, err: err})
		return true
	case err != nil:
		b.items = append(b.items, item{job: Job{Line: number}, err: err, last: true})
		return false
	}
	job, ok, err := p.parse(line, number)
	if !ok || number < from {
		return true
	}
	if err != nil {
		b.items = append(b.items, item{job: Job{Line: number}, err: err})
		return true
	}
	job.ID, job.Queue, job.Payload = b.keep(job.ID), b.keep(job.Queue), b.keep(job.Payload)
	b.items = append(b.items, item{job: job})
	return true
}

// keep copies s into the batch. A buffer that grows leaves earlier slices on the old array, which is fine.
func (b *batch) keep(s []byte) []byte {
	at := len(b.buf)
	b.buf = append(b.buf, s...)
	return b.buf[at:len(b.buf):len(b.buf)]
}

// recycle gives a batch back. One that a long line has blown up is dropped.
func (f *feed) recycle(b *batch) {
	if cap(b.buf) > 4*batchBytes {
		b.buf = nil
	}
	f.free <- b
}

// end stops the goroutine as soon as its Read returns; a Closer is closed, which makes most Reads return.
func (f *feed) end(in io.Reader) {
	close(f.stop)
	if c, ok := in.(io.Closer); ok {
		_ = c.Close() // nothing more is wanted of it
	}
}
