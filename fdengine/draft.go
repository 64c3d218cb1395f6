package fdengine

import (
	"github.com/fdengine/fullduplex/carry"
)

// draft is a request on its way into the log: what a caller makes of a command before the lock is taken. Drafts are
// few, used again at once and therefore warm, where the stacks of thousands of callers are cold: what lies here does
// not lie there.
type draft struct {
	cmd  Command
	spec Spec
	rec  *carry.Record[entry]
	enc  []byte
	solo bool // its caller may write and read for itself
}

const keepScratch = 16 << 10

func newDraft() any { return &draft{rec: new(carry.Record[entry])} }

// encode asks the command for its spec and its bytes. It runs behind a border.
func (d *draft) encode() (err error) {
	if s, ok := d.cmd.(Speccer); ok {
		d.spec = s.Spec()
	}
	_, d.rec.Judge = d.cmd.(Verdicter)
	d.enc, err = d.cmd.AppendRequest(d.enc[:0])
	return err
}

// discard makes d ready for the next request; the log has copied what it needs, or got the buffer.
func (e *Engine) discard(d *draft) {
	enc := d.enc[:0]
	if cap(enc) > keepScratch {
		enc = nil
	}
	*d.rec = carry.Record[entry]{}
	*d = draft{rec: d.rec, enc: enc}
	e.drafts.Put(d)
}
