package redis

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/resp"
)

// change adds or removes topics and waits for the confirmations. Each is a command of its own: a refused one
// answers with one error, whatever the number of its channels. The error is the first.
func (s *Subscription) change(ctx context.Context, on bool, f form, names []string) error {
	cmds := make([]fdengine.Command, len(names))
	var added []topic
	s.mu.Lock()
	for i, name := range names {
		t := topic{f, name}
		cmds[i] = &subscribeCmd{s, t, on}
		if _, there := s.mu.want[t]; on && !there {
			s.mu.want[t] = false
			s.mu.names[name] = name
			added = append(added, t)
		}
	}
	if !on {
		s.dropLocked(f, names)
	}
	s.mu.Unlock()
	err := s.engine.DoBatch(ctx, cmds, nil)
	if err == nil || len(added) == 0 {
		return err
	}
	names = names[:0:0]
	for _, t := range added {
		names = append(names, t.name)
	}
	s.mu.Lock()
	s.dropLocked(f, names)
	s.mu.Unlock()
	for _, t := range added { // nobody waits; what is not wanted is not restored either
		_ = s.engine.TrySubmit(&subscribeCmd{s, t, false}, ignored{})
	}
	return err
}

func (s *Subscription) dropLocked(f form, names []string) {
	for _, name := range names {
		delete(s.mu.want, topic{f, name})
		delete(s.mu.names, name)
	}
}

// ignored is a completion that nobody waits for.
type ignored struct{}

func (ignored) Complete(fdengine.Command, error) {}

// subscribeCmd adds or removes one topic. It may run twice.
type subscribeCmd struct {
	s  *Subscription
	t  topic
	on bool
}

func (c *subscribeCmd) verb() string {
	subscribe, unsubscribe := c.t.form.verbs()
	if c.on {
		return subscribe
	}
	return unsubscribe
}

func (c *subscribeCmd) Spec() fdengine.Spec {
	return fdengine.Spec{Class: carry.Replay, Budget: math.MaxUint16}
}

func (c *subscribeCmd) AppendRequest(dst []byte) ([]byte, error) {
	return appendTopic(dst, c.verb(), c.t.name), nil
}

func appendTopic(dst []byte, verb, name string) []byte {
	return resp.AppendBulkString(resp.AppendBulkString(resp.AppendArrayHeader(dst, 2), strings.ToUpper(verb)), name)
}

// Verdict implements fdengine.Verdicter: a confirmation of something else, such as a shard's channel that moved
// away, means that the subscriptions are not what we think.
func (c *subscribeCmd) Verdict(frame []byte, _ bool) fdengine.Verdict {
	if e := errorOf(frame); e != nil {
		return judge(e, "", refusals(), false)
	}
	if !confirms(frame, c.verb(), c.t.name) {
		return fdengine.Verdict{Conn: fdengine.Cut}
	}
	return fdengine.Verdict{}
}

func (c *subscribeCmd) DecodeReply(r fdengine.Reply) error {
	if e := errorOf(r.Frame); e != nil {
		return e
	}
	if !confirms(r.Frame, c.verb(), c.t.name) {
		return fmt.Errorf("redis: %s was answered by something else", c.verb())
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.mu.heard = time.Now()
	if _, wanted := c.s.mu.want[c.t]; wanted && c.on {
		c.s.mu.want[c.t] = true
	}
	return nil
}

// pushed gets what answers nothing, on the reader.
func (s *Subscription) pushed(frame []byte) {
	kind := noticeOf(frame)
	if kind != isMessage && kind != isPatternMessage {
		if f := s.client.options.OnPush; f != nil {
			f(frame)
		}
		return
	}
	pattern, channel, payload, err := readMessage(frame, kind)
	s.mu.Lock()
	s.mu.heard = time.Now()
	m := Message{Channel: s.nameLocked(channel), Pattern: s.nameLocked(pattern)}
	s.mu.Unlock()
	if err != nil {
		s.box.miss(Missed{Dropped: 1}) // a message without text is none that a server publishes
		return
	}
	m.Payload = append(make([]byte, 0, len(payload)), payload...)
	s.box.put(m)
}

// nameLocked is b as a string, that of the subscription where there is one.
func (s *Subscription) nameLocked(b []byte) string {
	if name, ok := s.mu.names[string(b)]; ok {
		return name
	}
	return string(b)
}

// heartbeat is a PING in either form of its answer. It is also what makes the engine dial again.
type heartbeat struct{ s *Subscription }

func (h *heartbeat) Spec() fdengine.Spec {
	return fdengine.Spec{Class: carry.Replay, Budget: math.MaxUint16}
}

func (h *heartbeat) AppendRequest(dst []byte) ([]byte, error) {
	return resp.AppendBulkString(resp.AppendArrayHeader(dst, 1), "PING"), nil
}

func (h *heartbeat) DecodeReply(r fdengine.Reply) error {
	h.s.mu.Lock()
	h.s.mu.heard = time.Now()
	h.s.mu.Unlock()
	if e := errorOf(r.Frame); e != nil {
		return e
	}
	return nil
}

// beat submits a heartbeat unless one is on its way.
func (s *Subscription) beat() {
	if s.beats.CompareAndSwap(false, true) && s.engine.TrySubmit(&heartbeat{s}, (*beaten)(s)) != nil {
		s.beats.Store(false)
	}
}

// beaten is told the outcome of a heartbeat.
type beaten Subscription

func (b *beaten) Complete(_ fdengine.Command, err error) {
	s := (*Subscription)(b)
	s.beats.Store(false)
	if pool.IsPermanent(err) {
		s.box.end(err)
		_ = s.engine.Close()
	}
}

// Observe implements fdengine.Observer: a session that ends leaves a gap, and makes the next one begin.
func (s *Subscription) Observe(ev fdengine.Event) {
	if ev.Kind == fdengine.EventSessionEnd {
		s.mu.Lock()
		wanted := len(s.mu.want) > 0
		for _, confirmed := range s.mu.want {
			if confirmed && s.mu.lost.IsZero() {
				s.mu.lost, s.mu.cause = s.mu.heard, ev.Err
			}
		}
		s.mu.Unlock()
		if wanted {
			s.beat()
		}
	}
	if o := s.client.options.Engine.Observer; o != nil {
		o.Observe(ev)
	}
}

// subscriptions is the list of a client's open ones.
type subscriptions struct {
	mu struct {
		sync.Mutex
		closed bool
		open   map[*Subscription]bool
	}
}

// enter adds s; false when the client is closed.
func (l *subscriptions) enter(s *Subscription) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return false
	}
	if l.mu.open == nil {
		l.mu.open = map[*Subscription]bool{}
	}
	l.mu.open[s] = true
	return true
}

func (l *subscriptions) leave(s *Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.open, s)
}

// close closes all and returns those whose goroutines may still run.
func (l *subscriptions) close() (open []*Subscription) {
	l.mu.Lock()
	l.mu.closed = true
	for s := range l.mu.open {
		open = append(open, s)
	}
	l.mu.Unlock()
	for _, s := range open {
		_ = s.Close()
	}
	return open
}

// end is close, and waits until all are gone.
func (l *subscriptions) end() {
	for _, s := range l.close() {
		<-s.Done()
	}
}
