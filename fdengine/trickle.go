package fdengine

import (
	"math"
	"sync"
	"time"
)

// Some servers write each reply by itself as soon as they have it (beanstalkd does). A reader that is woken for each of
// them costs more than all the rest: a system call to wait, one to read, and a CPU that wakes from sleep, for one
// command. While many commands are in flight and their replies trickle, the reader therefore asks the socket to be woken
// for several (pool.Conn.Gather). The server does not run dry meanwhile, since at most a quarter of what is in flight is
// waited for, and what is waited for is counted in replies of the shortest length seen, so that it comes even if
// the rest are shorter than the average. When it does not come within a tick (one command holds up the server), the
// sweeper ends the wait, and the reader does without for a while: that is what a reply can be late by.

const (
	trickleFrom  = 16                   // commands in flight from which waiting for several replies is thought of
	trickleLeast = 4                    // replies that are worth it
	trickleWait  = 2 * time.Millisecond // what is likely to come in that time is waited for, not more
	trickleMax   = 4 << 10              // bytes
	tricklePause = 256                  // chunks to go without after a wait that the sweeper ended
)

// trickle is guarded by the log's lock, but for least, which is the reader's.
type trickle struct {
	low   int   // bytes to wait for; 1 = any
	told  int   // what the socket knows
	since int64 // the last chunk
	each  int64 // ns that one reply takes, the last ones weighing most
	pause int   // chunks to go without
	least int   // bytes of the shortest reply of the chunk at hand
	tells sync.Mutex
}

// trickling decides, at the end of a chunk, what the next read waits for, and says whether tellLow is to be called. Under
// the lock.
func (s *session) trickling(now int64) (tell bool) {
	replies := int(s.replies)
	if replies > 0 {
		s.each += ((now-s.since)/int64(replies) - s.each) / 4
	}
	s.since = now
	least := s.least
	s.least = 0
	if s.pause > 0 {
		s.pause--
	}
	want := s.howMany(replies) * least
	switch {
	case want > trickleMax:
		want = trickleMax
	case want == 0:
		want = 1
	}
	if inFlight, _ := s.e.log.InFlight(); s.low/2 <= want && want <= 2*s.low && s.low <= inFlight*least/2 {
		return false // near enough: each change is a system call
	}
	s.low = want
	return s.low != s.told
}

// howMany replies the next read is to wait for when the last one brought so many; 0: any. Under the lock.
func (s *session) howMany(replies int) int {
	inFlight, _ := s.e.log.InFlight()
	if !s.local || s.pause > 0 || replies == 0 || inFlight < trickleFrom || s.ending != reasonNone || s.dead {
		return 0
	}
	// Replies come few at a time: an eighth of what is asked for, or what was waited for.
	if few := (inFlight + replies) / 8; replies > few && (s.low <= 1 || replies > 4*few) {
		return 0
	}
	n := min(inFlight/4, int(int64(trickleWait)/max(s.each, 1)))
	if n < trickleLeast {
		return 0
	}
	return n
}

// dried ends a wait that is too long, and says whether tellLow is to be called. Under the lock.
func (s *session) dried(now int64) (tell bool) {
	if s.low == 1 || now-s.since < int64(tick) {
		return false
	}
	s.low, s.pause = 1, tricklePause
	return true
}

// tellLow tells the socket what was decided; the reader's word and the sweeper's take turns. The log's lock is not held.
func (s *session) tellLow() {
	s.tells.Lock()
	defer s.tells.Unlock()
	l := &s.e.log
	l.Lock()
	low, changed := s.low, s.low != s.told
	s.told = low
	l.Unlock()
	if changed && !s.conn.Gather(low) {
		l.Lock()
		s.low, s.told, s.pause = 1, 1, math.MaxInt // not on this connection
		l.Unlock()
	}
}
