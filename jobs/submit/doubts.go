package submit

import (
	"errors"
	"io"

	"github.com/fdengine/fullduplex/jobs/state"
)

// Doubts are the jobs that earlier runs may have sent and whose target can show whether it has them: nothing protects
// them (Traits.Once), and they can be told from others (not Traits.Bare). It takes memory for each of them. One
// goroutine at a time.
type Doubts struct {
	lines map[uint64][]int64
	sure  map[uint64]int // copies of equal jobs that were taken, at most
	own   bool           // some bring an id of their own, and so may be equal to others
	found state.Set
}

// FindDoubts reads what earlier runs have read of an input (o.Past), with the options of the run that goes on with it.
// open is called up to twice.
func FindDoubts(open func() (io.ReadCloser, error), o Options, to Target) (*Doubts, error) {
	d := &Doubts{lines: map[uint64][]int64{}, sure: map[uint64]int{}}
	past := o.withDefaults().Past
	if past.Doubts() == 0 {
		return d, nil
	}
	err := d.read(open, o, to, func(job Job, traits Traits) {
		if past.Doubt(job.Line) && !traits.Once && !traits.Bare {
			k := keyOf(job, traits)
			d.lines[k] = append(d.lines[k], job.Line)
			d.own = d.own || job.Own
		}
	})
	if err != nil || !d.own {
		return d, err
	}
	return d, d.read(open, o, to, func(job Job, traits Traits) {
		k := keyOf(job, traits)
		if _, asked := d.lines[k]; !asked || !past.Acked.Has(job.Line) {
			return
		}
		d.sure[k] += 1 + int(past.Again)
		if past.Twice.Has(job.Line) {
			d.sure[k] += 1 + int(past.Again)
		}
	})
}

// read calls f for each job up to the last line that was dealt with.
func (d *Doubts) read(open func() (io.ReadCloser, error), o Options, to Target, f func(Job, Traits)) (err error) {
	o = o.withDefaults()
	in, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	l, p := newLines(in, o.MaxLine), newParser(o)
	for l.n < o.Past.Sent {
		line, number, err := l.next()
		switch {
		case errors.Is(err, ErrLineTooLong):
			continue
		case errors.Is(err, io.EOF):
			return nil // CheckInput says what is wrong
		case err != nil:
			return err
		}
		if job, ok, err := p.parse(line, number); ok && err == nil {
			f(job, to.Traits(job))
		}
	}
	return nil
}

// Count is how many there are.
func (d *Doubts) Count() (n int) {
	for _, lines := range d.lines {
		n += len(lines)
	}
	return n
}

// Found records one job that the target has; see Target.ReadBack.
func (d *Doubts) Found(id, queue, payload []byte) {
	k := key(id, queue, payload)
	lines := d.lines[k]
	switch {
	case len(lines) == 0:
	case d.sure[k] > 0:
		d.sure[k]-- // of one that is known to be taken
	default:
		d.found.Add(lines[0], lines[0])
		d.lines[k] = lines[1:]
	}
}

// Landed are the lines whose jobs were found; see Run.Landed.
func (d *Doubts) Landed() state.Set { return d.found }
