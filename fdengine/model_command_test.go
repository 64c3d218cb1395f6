package fdengine_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// record is one command under way and what became of it.
type record struct {
	w      *world
	plan   *plan
	caller int
	lane   *lane // whose order it is in; nil for a child
	seq    int   // of the call, in the lane
	epoch  int   // Resets of the stream before it
	op     op
	ctx    leave
	cancel func() // for contexts that end by what happens to the command

	released atomic.Bool // the engine must not touch the command any more

	// Guarded by world.mu until the run is over.
	told     int // outcomes told
	err      error
	rejected bool // Submit or TrySubmit returned err
	exited   bool // a lone caller's goroutine, which ran its own decoder or verdict, was ended by it
	asked    time.Duration
	accepted time.Duration
	settled  time.Duration
	left     time.Duration // when its context ended; 0 = it did not
	decodes  int
	sends    int
	maybe    bool
	answer   string
	touched  string // how the engine misused it
}

// lane is a series of commands whose order is promised: one caller's own, or one stream's.
type lane struct {
	name   string
	stream *fdengine.Stream
	epoch  int
	next   int
	all    []*record
}

func (l *lane) add(r *record) {
	r.lane, r.seq, r.epoch = l, l.next, l.epoch
	l.next++
	l.all = append(l.all, r)
}

// command is what the engine sees. Its fields are not locked, and are scribbled over when the engine has let go of
// it, so that the race detector sees an engine that comes back.
type command struct {
	r        *record
	token    string
	spec     fdengine.Spec
	pad      string
	judged   int
	panicked bool
}

// judging is a command that judges its own replies.
type judging struct{ *command }

var (
	_ fdengine.Speccer   = (*command)(nil)
	_ fdengine.Verdicter = judging{}
)

func newCommand(r *record) fdengine.Command {
	p := r.plan
	c := &command{r: r, token: p.token, pad: strings.Repeat("x", p.size)}
	c.spec = fdengine.Spec{Class: p.class, Budget: p.budget, Timeout: p.timeout, Route: uint64(p.id)}
	switch p.shape {
	case noted:
		c.spec.Frames = fdengine.NoReply
	case asking:
		c.spec.Frames, c.spec.Skip = 2, 1
	case double:
		c.spec.Frames = 2
	}
	if p.judge != judgeNot {
		return judging{c}
	}
	return c
}

func of(cmd fdengine.Command) *command {
	if j, ok := cmd.(judging); ok {
		return j.command
	}
	return cmd.(*command)
}

func (c *command) Spec() fdengine.Spec { return c.spec }

var (
	errEncode = errors.New("cannot encode")
	errDecode = errors.New("cannot decode")
)

func (c *command) AppendRequest(dst []byte) ([]byte, error) {
	switch c.r.plan.encode {
	case faultError:
		return nil, errEncode
	case faultPanic:
		panic("encoder")
	}
	switch c.r.plan.shape {
	case asking:
		dst = scripted.AppendRequest(dst, "ASKING")
	case double:
		dst = scripted.AppendRequest(dst, "ECHO", "p"+c.token)
	case noted:
		return scripted.AppendRequest(dst, "NOTE", c.token, c.pad), nil
	}
	return scripted.AppendRequest(dst, "ECHO", c.token, c.pad), nil
}

func (c *command) misused(format string, args ...any) {
	c.r.w.mu.Lock()
	defer c.r.w.mu.Unlock()
	c.r.touched += fmt.Sprintf(format, args...) + "; "
}

// DecodeReply keeps the reply, and checks that it is this command's own.
func (c *command) DecodeReply(r fdengine.Reply) error {
	rec := c.r
	if rec.released.Load() {
		c.misused("decoded after it was released")
		return nil
	}
	frame := string(r.Frame)
	w := rec.w
	w.mu.Lock()
	rec.decodes++
	rec.sends, rec.maybe, rec.answer = r.Sends, r.Maybe, clip(frame)
	w.mu.Unlock()
	w.decoded(rec)
	switch rec.plan.decode {
	case faultError:
		return errDecode
	case faultPanic:
		rec.poison(frame)
		panic("decoder")
	case faultExit:
		rec.poison(frame)
		runtime.Goexit()
	}
	if rec.plan.shape == double {
		first := string(scripted.AppendBulk(nil, "p"+c.token))
		rest, ok := strings.CutPrefix(frame, first)
		if !ok && !w.p.surplus {
			c.misused("got %q for the first of two", clip(frame))
			return nil
		}
		frame = rest
	}
	if line, ok := strings.CutPrefix(frame, "-"); ok {
		return &scripted.ServerError{Line: strings.TrimSuffix(line, "\r\n")}
	}
	own := string(scripted.AppendBulk(nil, c.token))
	_, text, _ := strings.Cut(frame, "\r\n")
	if frame != own && !strings.HasPrefix(text, c.token+":") && !w.p.surplus {
		c.misused("got the reply %q", clip(frame))
	}
	return nil
}

// poison is world.poison for a decoder that fails on frame. A refusal that a stream kept until it knew better is
// decoded long after it was read; that says nothing about a connection.
func (r *record) poison(frame string) {
	held := r.lane != nil && r.lane.stream != nil && (r.plan.judge == judgeRetry || strings.Contains(frame, "\n-") || frame[0] == '-')
	if !held {
		r.w.poison()
	}
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

func (j judging) Verdict(frames []byte, maybe bool) fdengine.Verdict {
	c := j.command
	p := c.r.plan
	if c.r.released.Load() {
		c.misused("judged after it was released")
		return fdengine.Verdict{}
	}
	if i := bytes.LastIndex(frames, []byte("\r\n-")); frames[0] == '-' || i >= 0 {
		line := string(frames[max(i+2, 0)+1:])
		if i < 0 {
			line = string(frames[1:])
		}
		v := scripted.Judge(strings.TrimSuffix(line, "\r\n"))
		if v.Conn == fdengine.Retire {
			c.r.w.poison()
		}
		return v
	}
	c.judged++
	switch p.judge {
	case judgeRetry:
		if c.judged <= p.times {
			return fdengine.Verdict{Then: fdengine.RetryHere, After: time.Millisecond}
		}
	case judgePanics, judgeExits:
		if !c.panicked {
			c.panicked = true
			if p.judge == judgeExits {
				runtime.Goexit()
			}
			panic("judge")
		}
	case judgeRetire:
		c.r.w.poison()
		return fdengine.Verdict{Conn: fdengine.Retire}
	case judgeCuts:
		c.r.w.poison()
		return fdengine.Verdict{Conn: fdengine.Cut}
	}
	return fdengine.Verdict{}
}

// release is the caller taking its command back.
func (c *command) release() {
	c.r.released.Store(true)
	c.token, c.pad, c.judged, c.panicked = "scribbled", "", -1, true
	c.spec = fdengine.Spec{Frames: -100, Budget: -100}
}

// Complete makes world the one completion of all commands.
func (w *world) Complete(cmd fdengine.Command, err error) {
	c := of(cmd)
	r := c.r
	w.tell(r, err)
	done, child := r.plan.done, r.plan.child
	c.release()
	switch done {
	case donePanics:
		panic("completion")
	case doneExits:
		runtime.Goexit()
	case doneTries:
		w.try(r.caller, child)
	case doneCloses:
		_ = w.Close()
	case doneShuts:
		w.shuts.Go(func() { w.shutdown(20 * time.Millisecond) })
	case doneBlocks:
		pause(3 * time.Millisecond)
	}
}

// tell notes an outcome.
func (w *world) tell(r *record, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.told++; r.told == 1 {
		r.err, r.settled = err, w.now()
	}
}

// pause lets fake time pass.
func pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}
