package fdengine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/pool"
)

// session is one connection's time with the engine. The engine goroutine writes (writer.go), the session's reader
// reads (reader.go); both are joined before the log is cut.
type session struct {
	e     *Engine
	conn  *pool.Conn
	proto Protocol
	addr  string

	// Guarded by the log's lock.
	from     uint64 // Log.Published when it began
	dead     bool   // cut: nothing more is written or read
	cause    error  // the first one wins
	ending   reason // stop writing, drain
	endAt    int64  // when ending began
	endNext  reason // asked for by the reader or the sweeper, taken up by the writer
	answers  uint64 // replies so far
	good     uint64 // of them, no refusals
	alone    bool   // one record until the first answer
	started  int64
	base     int64 // the oldest unanswered record was accepted, or the last reply arrived
	active   int64 // last write or reply
	useful   int64 // the same without the idle ping
	pinging  bool
	pingSpan bool // span is the idle ping
	gathering
	trickle
	chain
	turn
	solo
	writing bool // span is being written
	span    carry.Span[entry]
	assumed bool     // written is the cautious answer of a connection that cannot tell
	parts   [][]byte // scratch of who writes a span of several parts
	written int      // bytes of span accepted; read by the engine goroutine after the write
	passed  int      // as far as is known while it is written

	cutFlag atomic.Bool // dead, for a look without the lock
	poke    struct {
		sync.Mutex
		why poking // the write deadline was pulled
	}
	lookedAt int64        // when it was, to know how much has left
	writeAt  atomic.Int64 // when the piece being written was started; 0 = none
	userAt   atomic.Int64 // when the reader began to work on the chunk at hand; 0 = it is reading
	stuck    bool         // reported; sweeper

	readerDone chan struct{}
	stopping   atomic.Bool // the reader is asked to leave the connection in peace
	readState
	limiting limiting
}

func newSession(e *Engine, conn *pool.Conn, proto Protocol) *session {
	s := &session{e: e, conn: conn, proto: proto, readerDone: make(chan struct{})}
	s.resume, s.over = make(chan struct{}, 1), make(chan struct{}, 1)
	s.started = e.stamp()
	s.low, s.told, s.since = 1, 1, s.started
	s.base, s.active, s.useful = s.started, s.started, s.started
	s.alone = e.alone
	s.mayTake = e.opt.takesTurns() && conn.CanTryWrite()
	if s.maySolo = e.soloAfter > 0; s.maySolo && e.opt.LoneCaller == 0 {
		_, s.maySolo = conn.Readable()
	}
	if s.buf = e.readBuf; s.buf == nil {
		s.buf = make([]byte, readBuffer)
	}
	e.readBuf = nil
	s.w = s.load(conn.Unread)
	conn.Unread = nil
	return s
}

func addrOf(c *pool.Conn) string {
	if a := c.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// cut ends the session at once, from any goroutine: the raw socket is closed, reader and writer return. The first
// cause stays.
func (s *session) cut(cause error) {
	l := &s.e.log
	l.Lock()
	first := s.cutLocked(cause)
	l.Unlock()
	if first {
		_ = s.conn.Abort()
		s.e.signal()
	}
}

// cutLocked is cut without closing; when it returns true the caller, having released the lock, must call Abort and
// signal.
func (s *session) cutLocked(cause error) bool {
	if s.dead {
		return false
	}
	s.dead, s.cause = true, cause
	s.endWait()
	s.recall()
	s.cutFlag.Store(true)
	s.e.unpark()
	return true
}

// ask wants the session to end cleanly for the given reason. Under the lock; the writer takes it up.
func (s *session) ask(r reason) {
	if s.endNext < r {
		s.endNext = r
	}
}

// wantsEnd decides whether the writer stops here. Under the lock.
func (s *session) wantsEnd(now int64) reason {
	e := s.e
	empty := e.log.Empty()
	switch {
	case s.endNext == reasonRetire:
		return reasonRetire
	case e.stopping && empty:
		return reasonGraceful
	case e.stopping:
		return reasonNone // a terminating Close outranks what follows
	case s.conn.ShouldHandoff():
		return reasonRecycle
	case e.opt.MaxHold > 0 && !empty && now-s.started >= int64(e.opt.MaxHold):
		return reasonRecycle
	case s.endNext == reasonIdle && empty:
		return reasonIdle
	}
	s.endNext = reasonNone
	return reasonNone
}

// stopReader makes the reader leave a connection on which nothing is in flight. One that stood by has a look first: what
// the server said or did meanwhile decides whether the connection may be put back.
func (s *session) stopReader() {
	s.stopping.Store(true)
	s.endWait()
	at := time.Unix(1, 0)
	s.e.log.Lock()
	if s.vacant {
		at = time.Now().Add(tick)
		s.recall()
	}
	s.e.log.Unlock()
	_ = s.conn.SetReadDeadline(at)
	<-s.readerDone
	_ = s.conn.SetReadDeadline(time.Time{})
}

// Causes of a cut that this package finds itself.
var (
	errReadTimeout  = timeoutError("no reply within ReadTimeout")
	errWriteTimeout = timeoutError("no byte accepted within WriteTimeout")
	errDrainTimeout = timeoutError("what was in flight did not come within the bound")
	errSurplus      = errors.New("a reply arrived with nothing in flight")
	errJudged       = errors.New("the reply says that the stream is not aligned")
)

// timeoutError is a net.Error whose Timeout is true.
type timeoutError string

func (t timeoutError) Error() string { return "fdengine: " + string(t) }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// FramingError says that what the server sent could not be framed; the connection was cut.
type FramingError struct{ Err error }

func (f *FramingError) Error() string {
	return fmt.Sprintf("fdengine: cannot frame the reply stream: %v", f.Err)
}
func (f *FramingError) Unwrap() error { return f.Err }
