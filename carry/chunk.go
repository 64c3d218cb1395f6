package carry

// Chunk is the reader's walk over the records that one read may have answered. Peek and Take run without the lock:
// between Begin and End nobody else moves what lies before the snapshot.
type Chunk[T any] struct {
	blk, endBlk *block[T]
	i, end      int
	cmds, bytes int // taken
	slots       int
	ackBlk      *block[T]
	ackI        int
}

// Begin opens the chunk: every record published by now may be taken. One chunk is open at a time.
func (l *Log[T]) Begin(c *Chunk[T]) {
	l.reading = true
	*c = Chunk[T]{blk: l.at, i: l.ack, endBlk: l.cur, end: l.pub}
	if c.end == 0 && c.endBlk != c.blk {
		// Splice may link blocks in front of the cursor's; the walk must end before them.
		c.endBlk, c.end = c.endBlk.prev, c.endBlk.prev.n
	}
	c.settle()
}

// settle moves the chunk's position off the end of a block.
func (c *Chunk[T]) settle() {
	for c.blk != c.endBlk && c.i == c.blk.n {
		c.blk, c.i = c.blk.next, 0
	}
}

// Peek returns the oldest record not taken, or nil when nothing is in flight. Without the lock.
func (c *Chunk[T]) Peek() *Record[T] {
	if c.blk == c.endBlk && (c.blk == nil || c.i == c.end) {
		return nil
	}
	return &c.blk.recs[c.i]
}

// Take counts the record that Peek returned as answered. Without the lock. It stays in place until End.
func (c *Chunk[T]) Take() {
	r := &c.blk.recs[c.i]
	c.cmds++
	c.bytes += int(r.size)
	if r.Frames != 0 {
		c.slots++
	}
	c.i++
	c.ackBlk, c.ackI = c.blk, c.i
	c.settle()
}

// Lead tells what was taken to Held before End, so that foreign code called by the reader finds the room its own
// completion made. Without the lock.
func (l *Log[T]) Lead(c *Chunk[T]) {
	l.lead.Store(uint64(c.bytes)<<leadBits | uint64(min(c.cmds, 1<<leadBits-1)))
}

// End closes the chunk and acks what was taken.
func (l *Log[T]) End(c *Chunk[T]) {
	l.reading = false
	l.lead.Store(0)
	if c.cmds > 0 {
		l.at, l.ack = c.ackBlk, c.ackI
		l.cmds -= c.cmds
		l.bytes -= c.bytes
		l.inFlight -= c.slots
		l.flying -= c.bytes
		l.answered += uint64(c.cmds)
	}
	*c = Chunk[T]{}
	l.ackQuiet()
	l.release()
}

// ackQuiet moves acked over settled records without reply, which no reply will ever move it over.
func (l *Log[T]) ackQuiet() {
	if l.reading {
		return
	}
	for l.at != nil {
		if l.at != l.cur && l.ack == l.at.n {
			l.at, l.ack = l.at.next, 0
			continue
		}
		if l.at == l.cur && l.ack == l.pub {
			return
		}
		r := &l.at.recs[l.ack]
		if r.Frames != 0 || r.live() {
			return
		}
		l.ack++
		l.answered++
		l.cmds--
		l.bytes -= int(r.size)
		l.flying -= int(r.size)
	}
}

// Encoded returns the bytes of the record that Peek returned, or Take took last. Valid until End. Without the lock.
func (c *Chunk[T]) Encoded(r *Record[T]) []byte {
	if c.ackBlk != nil && c.ackI > 0 && &c.ackBlk.recs[c.ackI-1] == r {
		return c.ackBlk.bytes(r)
	}
	return c.blk.bytes(r)
}

// Reading says whether a chunk is open.
func (l *Log[T]) Reading() bool { return l.reading }
