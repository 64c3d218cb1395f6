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

const leastScratch = 512

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
	d.enc, err = d.cmd.AppendRequest(d.base)
	if d.inside() {
		d.enc = append(d.base, d.enc...)
	}
	return err
}

// inside says whether the request lies in the buffer that the encoder was given, but not at its start.
func (d *draft) inside() bool {
	base, enc := uintptr(unsafe.Pointer(unsafe.SliceData(d.base))), uintptr(unsafe.Pointer(unsafe.SliceData(d.enc)))
	return base < enc && enc < base+uintptr(cap(d.base))
}

// ours says whether the request lies in the buffer that the encoder was given. One that returned another has grown that,
// or has a buffer of its own, which must not be written to.
func (d *draft) ours() bool {
	return cap(d.base) > 0 && unsafe.SliceData(d.base) == unsafe.SliceData(d.enc)
}

// discard makes d ready for the next request; the log has copied what it needs, or kept the buffer.
func (e *Engine) discard(d *draft) {
	enc := d.base
	switch size := max(cap(d.base), cap(d.enc), leastScratch); {
	case d.kept && d.spare != nil:
		enc = d.spare
	case d.kept && d.ours(), cap(d.base) < len(d.enc):
		enc = nil
		if size <= keepScratch {
			enc = make([]byte, 0, size) // so that the next one is encoded in place
		}
	}
	if cap(enc) > keepScratch {
		enc = nil
	}
	*d.rec = carry.Record[entry]{}
	*d = draft{rec: d.rec, enc: enc, base: enc}
	e.drafts.Put(d)
}
