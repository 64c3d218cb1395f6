package carry

// Splice puts records that were away into the chain at published, so that they are written before anything
// unsent, in the order given; behind those that came back before and still wait. Those whose caller left meanwhile
// are dropped, and those of a Stream that broke before them end. It returns how many came in.
func (l *Log[T]) Splice(ws []Away[T]) int {
	if len(ws) == 0 {
		return 0
	}
	b, after := l.slot()
	in := 0
	for i := range ws {
		w := &ws[i]
		r := w.Rec
		r.size = uint32(len(w.Enc))
		if s := r.Stream; s != nil {
			if r.orphaned() {
				l.endAway(w, WhyBroken, l.keep)
				continue
			}
			r.gen = s.gen // its new sequence number says nothing about older breaks
		}
		if !l.name(&r, away) {
			continue
		}
		if b == nil || !b.room(len(w.Enc)) {
			b = l.open(len(w.Enc), after)
			after = b
		}
		off := len(b.buf)
		b.buf = append(b.buf, w.Enc...)
		l.place(b, &r, off, len(w.Enc), r.Start)
		l.cmds++
		l.bytes += len(w.Enc)
		in++
	}
	l.aim()
	return in
}

// open makes a block for size bytes of records that come back, behind after, and moves published to its start when
// it stands there.
func (l *Log[T]) open(size int, after *block[T]) *block[T] {
	var b *block[T]
	if size >= BigRequest {
		b = bigBlock[T](make([]byte, 0, size))
		l.spares.uses(cap(b.mem))
	} else {
		b = l.take(size, 1)
	}
	l.insert(b, after)
	if l.cur != nil && b.next == l.cur {
		if l.at == l.cur && l.ack == l.pub {
			l.at, l.ack = b, 0
		}
		l.cur, l.pub = b, 0
	}
	return b
}

// slot finds the place of the next record that comes back: the block fill, when that is not nil and has room, else
// a new block behind after (nil: the first of the chain). Records that come back one by one must not take a block
// each, so those that already wait there are looked for, and room behind the cursor is used.
func (l *Log[T]) slot() (fill, after *block[T]) {
	b := l.cur
	if b == nil {
		return nil, nil
	}
	if b.dead > 0 {
		l.drop(b, l.pub)
	}
	switch {
	case l.pub >= b.back: // all that waits in b came back
		for b.next != nil && b.next.back == 0 {
			b = b.next
		}
		return b, b
	case l.pub == 0:
		return nil, b.prev
	}
	l.split(b)
	return nil, b
}

// split moves what is not published of b, the cursor's block, to a block of its own behind it.
func (l *Log[T]) split(b *block[T]) {
	base := b.recs[l.pub].off
	rest := l.take(len(b.buf)-int(base), b.n-l.pub)
	rest.buf = append(rest.buf, b.buf[base:]...)
	for i := l.pub; i < b.n; i++ {
		r := &b.recs[i]
		if r.Frames == 0 {
			b.quiet--
		}
		l.place(rest, r, int(r.off-base), int(r.size), r.Start)
	}
	clear(b.recs[l.pub:b.n])
	rest.back, b.back = b.back-l.pub, l.pub
	b.n, b.buf = l.pub, b.buf[:base]
	l.insert(rest, b)
}
