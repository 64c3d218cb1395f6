package fdengine

import (
	"net"
	"runtime"
	"time"

	"github.com/fdengine/fullduplex/pool"
)

// When what waits is worth a write. A write costs as much as a hundred commands, so the writer tries to find all
// that callers are about to say: it steps back for those who can run (yielding), it waits for the reader while that
// wakes the callers of one chunk of replies, and on the same host it waits while less than a quarter of what is in flight waits.

const (
	yieldEnough = 32 << 10               // bytes waiting that make a claim good enough as it is
	yieldSlow   = 100 * time.Microsecond // a yield that took longer than this
	yieldEach   = 5 * time.Microsecond   // and this for each command it brought: the process is starved
	yieldPause  = 64                     // claims without yielding after that
	yieldMax    = 3                      // yields before one claim, while the queue grows
	nearPart    = 4                      // of what is in flight must wait for a write to be worth it, on the same host
	nearBelow   = 500 * time.Microsecond // a round trip that costs less than the writes it saves
	crowd       = 8                      // outstanding commands from which waiting for more can save writes
)

// gathering is what a session knows about its writes. Guarded by the log's lock.
type gathering struct {
	local      bool   // the peer is on this host
	near       bool   // and the last round trip was short
	loose      bool   // the reader may be in foreign code: the writer does not wait for the end of its chunk
	tardy      bool   // the reader or a chain has kept the writer waiting for a tick: it does not wait for them until the next chunk
	force      bool   // write what waits, whatever it is
	waitsSince uint64 // one more than what was published at the last tick, if something waited then
	probe      uint64
	probeAt    int64 // when the writer had written the records up to probe; 0 = no round trip is being measured
}

// due says whether what waits is worth a write now. When it is not, the reader asks again at the end of its chunk, and
// whoever submits asks again as well. Under the lock.
func (e *Engine) due() bool {
	s := e.sess
	if s == nil || s.force {
		return true
	}
	waits, bytes := e.log.Queued()
	if s.inline || s.taken || s.awaitsReader(bytes) {
		return false
	}
	inFlight, _ := e.log.InFlight()
	return !s.near || waits >= inFlight/nearPart || bytes >= yieldEnough || waits+inFlight < crowd
}

// awaitsReader says that callers are being woken, who are about to submit again. Under the lock.
func (s *session) awaitsReader(bytes int) bool {
	if s.loose || s.tardy || s.force {
		return false
	}
	return s.waited || (s.e.log.Reading() || s.running.Load() > 0) && bytes < yieldEnough
}

// letLoose is called by the reader before foreign code that may keep it for long: nobody waits for its chunk.
func (s *session) letLoose() {
	s.tellLot()
	s.wakeChain()
	if s.loose { // nobody else writes it
		return
	}
	e := s.e
	e.log.Lock()
	s.loose = true
	waits, _ := e.log.Queued()
	wake := waits > 0 && e.unpark()
	e.log.Unlock()
	if wake {
		e.signal()
	}
}

// overdue is called by the sweeper at each tick, and says whether something has waited for a whole one while nothing was
// written, though no chain comes on: the peer is not as near as it was, or the reader is held up. Under the lock.
func (s *session) overdue() bool {
	waits, _ := s.e.log.Queued()
	before := s.waitsSince
	s.waitsSince = s.e.log.Published() + 1
	switch {
	case waits == 0 || !s.e.parked:
		s.waitsSince = 0
		return false
	case before != s.waitsSince || s.comesOn:
		return false
	}
	s.force, s.near, s.tardy = true, false, true
	return true
}

// probeFrom starts to measure a round trip, unless one is being measured. Under the lock.
func (s *session) probeFrom(published uint64, now int64) {
	if s.local && s.probeAt == 0 {
		s.probe, s.probeAt = published, max(now, 1)
	}
}

// probed ends the measuring when its records are answered. Under the lock.
func (s *session) probed(acked uint64, now int64) {
	if s.probeAt != 0 && acked >= s.probe {
		s.near = now-s.probeAt < int64(nearBelow)
		s.probeAt = 0
	}
}

// isLocal says whether the peer is on this host. Over a network the wait for a reply costs more than the write it may
// save, and the queue fills meanwhile by itself.
func isLocal(c *pool.Conn) bool {
	switch a := c.RemoteAddr().(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// yielding decides when the writer lets submitters run before it claims. A writer that runs the moment the first
// command lands finds two or three; one that steps back once finds what all callers woken by the last replies have
// to say, and turns it into one write. In a process starved of CPU a yield gives the turn to strangers: then it
// costs latency and brings nothing, and is left out for a while.
type yielding struct {
	pause int // claims to go without
	tries int
	had   uint64 // commands accepted before the last yield: replies that come meanwhile must not hide what it brought
	took  int64  // what it cost, ns
	held  int    // outstanding at the last claim: the first of many to come back is not alone
}

// before says whether to yield now. cmds and bytes are what waits, held is what is outstanding in all, accepted
// counts all commands so far.
func (y *yielding) before(cmds, bytes, held int, accepted uint64) bool {
	brought := accepted - y.had
	if y.tries > 0 && y.took > int64(yieldSlow)+int64(brought)*int64(yieldEach) {
		y.pause, y.tries = yieldPause, yieldMax
	}
	if cmds == 0 || max(held, y.held) < 2 || bytes >= yieldEnough || y.tries >= yieldMax || y.tries > 0 && brought == 0 {
		y.tries = 0
		return false
	}
	if y.pause > 0 {
		y.pause--
		return false
	}
	y.tries++
	y.had = accepted
	return true
}

func (y *yielding) yield(e *Engine) {
	at := e.stamp()
	runtime.Gosched()
	y.took = e.stamp() - at
}
