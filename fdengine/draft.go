package fdengine

import (
	"unsafe"

	"github.com/fdengine/fullduplex/carry"
)

// draft is a request on its way into the log: what a caller makes of a command before the lock is taken. Drafts are
// few, used again at once and therefore warm, where the stacks of thousands of callers are cold: what lies here does
// not lie there.
type draft struct {
	cmd   Command
	spec  Spec
	rec   *carry.Record[entry]
	enc   []byte
	base  []byte // what the encoder was given to append to
	kept  bool   // the log has kept enc
	spare []byte // and gave this
	solo  bool   // its caller may write and read for itself
}

// keepScratch is the largest buffer, in bytes, that a draft keeps for the next request. There are few drafts, and the garbage
// collector takes those that nobody uses.
const keepScratch = 4 << 20

func newDraft() any { return &draft{rec: new(carry.Record[entry])} }

// encode asks the command for its spec and its bytes. It runs behind a border.
func (d *draft) encode() (err error) {
	if s, ok := d.cmd.(Speccer); ok {
		d.spec = s.Spec()
	} else {
		d.spec = Spec{}
	}
	_, d.rec.Judge = d.cmd.(Verdicter)
	d.base = d.enc[:0]
	if d.enc, err = d.cmd.AppendRequest(d.base); err == nil && len(d.enc) > 0 && unsafe.SliceData(d.base) != unsafe.SliceData(d.enc) {
		// It outgrew the buffer, begins further on in it, or lies in memory that is not ours: only a copy is ours for sure,
		// to be read when the caller has left, and to be encoded into again.
		d.enc = append(d.base, d.enc...)
		d.base = d.enc[:0]
	}
	return err
}

// discard makes d ready for the next request; the log has copied what it needs, or kept the buffer.
func (e *Engine) discard(d *draft) {
	enc := d.base
	switch size := cap(d.base); {
	case d.kept && d.spare != nil:
		enc = d.spare
	case d.kept:
		enc = nil
		if size <= keepScratch {
			enc = make([]byte, 0, size) // so that the next one is encoded in place
		}
	}
	if cap(enc) > keepScratch {
		enc = nil
	}
	*d.rec = carry.Record[entry]{}
	// Field by field: a new value would be copied, in loads that are wider than its stores and wait for them.
	d.cmd, d.enc, d.base, d.kept, d.spare, d.solo = nil, enc, enc, false, nil, false
	e.drafts.Put(d)
}
