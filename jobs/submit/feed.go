package submit

import (
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/fdengine/fullduplex/jobs/state"
)

// A batch holds so many items and bytes at most, a last long line apart. With a journal it is larger: a sync of the
// disk goes before each.
const (
	batchItems = 256
	batchBytes = 64 << 10

	syncedItems = 1024
	syncedBytes = 1 << 20
)

// item is one line that is a job, or is corrupt (err), or ended the stream (last).
type item struct {
	job  Job
	err  error
	last bool
	was  was
}

// was is what an earlier run did with a line.
type was uint8

const (
	unsent  was = iota
	free        // it was announced, and is certainly not taken
	inDoubt     // it may have been taken
	acked       // it was taken
	landed      // it was in doubt, and turned out to be taken
)

// batch is some items and the bytes they point into. upto is the last line that went into it, whether it became an
// item or not; hash is that of the input up to there, when a journal wants it.
type batch struct {
	items  []item
	buf    []byte
	upto   int64
	hash   uint64
	format Format // of the input; FormatAuto: not known yet
}

// feed reads and parses on a goroutine of its own, so that parsing overlaps with submitting, and hands over
// batches. A batch goes out when it is full or when the input has nothing more at hand, so that a slow writer
// on the other side of a pipe sees each of its lines submitted at once. Two batches circulate.
type feed struct {
	past         *state.Past
	landed       *state.Set
	items, bytes int  // of a batch
	whole        bool // a batch goes out when it is full and not before: the input is a file
	out          chan *batch
	free         chan *batch
	stop         chan struct{}
}

func startFeed(in io.Reader, o Options, landed *state.Set) *feed {
	f := &feed{past: o.Past, landed: landed, items: batchItems, bytes: batchBytes, out: make(chan *batch), free: make(chan *batch, 2), stop: make(chan struct{})}
	f.free <- new(batch)
	f.free <- new(batch)
	l := newLines(in, o.MaxLine)
	if o.Journal != nil {
		f.items, f.bytes, f.whole = syncedItems, syncedBytes, true
		if o.Rate > 0 { // no more than a tenth of a second ahead
			f.items = max(1, min(f.items, int(o.Rate/10)))
		}
		l.sum = xxhash.New()
	}
	go f.run(l, newParser(o), o.FromLine)
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
		for more && len(b.items) < f.items && len(b.buf) < f.bytes {
			more = f.read(b, l, p, from)
			if !f.whole && len(b.items) > 0 && !l.buffered() {
				break
			}
		}
		b.format = p.format
		if b.upto = l.n; l.sum != nil {
			b.hash = l.sum.Sum64()
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
func (f *feed) read(b *batch, l *lines, p *parser, from int64) bool {
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
	b.items = append(b.items, item{job: job, was: f.before(number)})
	return true
}

// before says what an earlier run did with a line.
func (f *feed) before(line int64) was {
	switch {
	case line > f.past.Sent:
		return unsent
	case f.past.Acked.Has(line):
		return acked
	case f.past.Free.Has(line):
		return free
	case f.landed.Has(line):
		return landed
	}
	return inDoubt
}

// keep copies s into the batch. A buffer that grows leaves earlier slices on the old array, which is fine.
func (b *batch) keep(s []byte) []byte {
	at := len(b.buf)
	b.buf = append(b.buf, s...)
	return b.buf[at:len(b.buf):len(b.buf)]
}

// recycle gives a batch back. One that a long line has blown up is dropped.
func (f *feed) recycle(b *batch) {
	if cap(b.buf) > 4*f.bytes {
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
