package redis

import (
	"errors"
	"math"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

// Cmd is one command and the place for its reply. Build it, give it to a Client, Stream or Tx, and read the
// reply when the call has returned or the completion runs. Afterwards Reset makes it fit for another command
// with its memory. From submit to completion it belongs to the engine; it must not be copied.
//
// Arguments are encoded as they are added; bytes of 16 KiB and more are kept instead and must not change until the call
// that submits the command returns. Afterwards they are not read any more.
type Cmd struct {
	// The fields lie by who touches them: the submitter reads the first and the third cache line of 64 bytes, and
	// only the second, with the reply, goes back and forth between its CPU and the reader's.
	args    args
	class   carry.Class
	chosen  bool // class was set by WithClass
	looked  bool // entry holds what the table says
	entry   entry
	budget  int32
	timeout time.Duration

	reply    []byte // the whole frame
	err      error  // what stands in the way of reading the reply: a *ServerError, or a Tx's failure
	answered bool
	small    [23]byte

	inline [112]byte
	bad    error // of the arguments
}

// maxKept is the largest reply buffer that Reset keeps, in bytes.
const maxKept = 64 << 10

// NewCmd makes any command: its name and arguments, of the types that Args takes.
func NewCmd(args ...any) *Cmd { return new(Cmd).Args(args...) }

// Build starts a command by its name; the Arg methods add to it without boxing their values.
func Build(name string) *Cmd { return new(Cmd).Arg(name) }

// Reset forgets command, settings and reply, and starts a command by its name, as Build does.
func (c *Cmd) Reset(name string) *Cmd {
	enc, reply := c.args.enc[:0], c.reply[:0]
	if cap(reply) > maxKept {
		reply = nil
	}
	if cap(enc) > maxKept {
		enc = nil
	}
	*c = Cmd{args: args{enc: enc}, reply: reply}
	return c.Arg(name)
}

// arg prepares for one more argument.
func (c *Cmd) arg() *args {
	if c.args.enc == nil {
		c.args.enc = c.inline[:0]
	}
	c.looked = false
	return &c.args
}

// Arg adds a string.
func (c *Cmd) Arg(s string) *Cmd {
	c.arg().addString(s)
	return c
}

// ArgBytes adds bytes. It copies them, unless there are 16 KiB or more.
func (c *Cmd) ArgBytes(b []byte) *Cmd {
	c.arg().addBytes(b)
	return c
}

// ArgInt adds a number as decimal text.
func (c *Cmd) ArgInt(n int64) *Cmd {
	c.arg().addInt(n)
	return c
}

// ArgUint adds a number as decimal text.
func (c *Cmd) ArgUint(n uint64) *Cmd {
	c.arg().addUint(n)
	return c
}

// ArgFloat adds a number in the shortest text that reads back as the same value.
func (c *Cmd) ArgFloat(f float64) *Cmd {
	c.arg().addFloat(f)
	return c
}

// Args adds arguments of the types that resp.AppendCommand takes: string, []byte, integers, floats, bool and
// encoding.BinaryMarshaler, which is called here. An argument of another type fails the command when it is
// submitted.
func (c *Cmd) Args(args ...any) *Cmd {
	for _, a := range args {
		switch v := a.(type) {
		case string:
			c.Arg(v)
		case []byte:
			c.ArgBytes(v)
		case int:
			c.ArgInt(int64(v))
		case int64:
			c.ArgInt(v)
		case uint64:
			c.ArgUint(v)
		case float64:
			c.ArgFloat(v)
		default:
			c.other(a)
		}
	}
	return c
}

// other adds an argument of one of the rarer types, by way of its encoding.
func (c *Cmd) other(a any) {
	enc, err := resp.AppendArg(nil, a)
	if err != nil {
		c.bad = errors.Join(c.bad, err)
		return
	}
	r := resp.NewReader(enc)
	b, err := r.Bytes()
	c.bad = errors.Join(c.bad, err)
	c.ArgBytes(b)
}

// WithClass says what may be done with the command when it may have run, in place of the class table.
func (c *Cmd) WithClass(class carry.Class) *Cmd {
	c.class, c.chosen = class, true
	return c
}

// WithBudget sets how many re-sends may have executed; 0 = the engine's default, negative = none.
func (c *Cmd) WithBudget(n int) *Cmd {
	c.budget = int32(min(max(n, -1), math.MaxInt32))
	return c
}

// WithTimeout makes the command settle within d of its submit, to about 10 ms; cheaper than a ctx with deadline.
func (c *Cmd) WithTimeout(d time.Duration) *Cmd {
	c.timeout = d
	return c
}

// Name is the command's name as given; empty when there is none.
func (c *Cmd) Name() string { return c.args.name() }

var errNoName = errors.New("redis: a command needs a name, as a string or bytes")

// check says why the command cannot be sent on a shared connection; nil when it can.
func (c *Cmd) check() error {
	if c.bad != nil {
		return c.bad
	}
	if !c.args.worded {
		return errNoName
	}
	if c.look(); c.entry.why != shares {
		var words [longestWord]byte
		_, word := lookup(&c.args, &words)
		return c.entry.why.refuse(word)
	}
	return nil
}

// look finds the command in the table, once.
func (c *Cmd) look() {
	if !c.looked && c.args.n > 0 {
		var words [longestWord]byte
		c.entry, _ = lookup(&c.args, &words)
		c.looked = true
	}
}

// Class is what WithClass said, else what the class table says.
func (c *Cmd) Class() carry.Class {
	if c.chosen {
		return c.class
	}
	c.look()
	return c.entry.class
}

// Spec implements fdengine.Speccer.
func (c *Cmd) Spec() fdengine.Spec {
	c.look()
	// A script, or a module, may answer LOADING or BUSY in its own words after it wrote.
	opaque := c.entry.script || !c.entry.known
	return fdengine.Spec{Class: c.Class(), Budget: int(c.budget), Timeout: c.timeout, Opaque: opaque}
}

// AppendRequest implements fdengine.Command. A command that must not share the connection gives a
// *NotSharedError. The reply of an earlier use is forgotten.
func (c *Cmd) AppendRequest(dst []byte) ([]byte, error) {
	c.answered, c.err = false, nil
	if err := c.check(); err != nil {
		return dst, err
	}
	return c.appendTo(dst), nil
}

func (c *Cmd) appendTo(dst []byte) []byte { return c.args.appendTo(dst) }

// DecodeReply implements fdengine.Command: it keeps a copy of the frame, and returns the *ServerError that it
// may be.
func (c *Cmd) DecodeReply(r fdengine.Reply) error {
	c.answered = true
	if c.reply == nil {
		c.reply = c.small[:0]
	}
	c.reply = append(c.reply[:0], r.Frame...)
	if e := errorOf(c.reply); e != nil {
		c.err = e
	}
	return c.err
}

// fail settles a command of a Tx that got no reply of its own.
func (c *Cmd) fail(err error) { c.answered, c.err = true, err }
