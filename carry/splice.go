package carry

// Splice puts records that were away into the chain at published, so that they are written before anything
// unsent, in the order given. Those whose caller left meanwhile are dropped. It returns how many came in.
func (l *Log[T]) Splice(ws []Away[T]) int {
	if len(ws) == 0 {
		return 0
	}
	after := l.cut()
	in := 0
	var b *block[T]
	for i := range ws {
		w := &ws[i]
		r := w.Rec
		r.size = uint32(len(w.Enc))
		if !l.name(&r, away) {
			continue
		}
		if b == nil || !b.room(len(w.Enc)) {
			if len(w.Enc) >= BigRequest {
				b = &block[T]{buf: make([]byte, 0, len(w.Enc)), recs: make([]Record[T], 1), big: true}
			} else {
				b = l.take(len(w.Enc))
			}
			l.insert(b, after)
			if after == nil || after == l.cur {
				l.front(b, after)
			}
			after = b
		}
		off := len(b.buf)
		b.buf = append(b.buf, w.Enc...)
		l.place(b, &r, off)
		l.cmds++
		l.bytes += len(w.Enc)
		in++
	}
	l.aim()
	return in
}

// cut makes a block boundary at published and returns the block before it; nil when there is none.
func (l *Log[T]) cut() *block[T] {
	b := l.cur
	if b == nil {
		return nil
	}
	if b.dead > 0 {
		l.drop(b, l.pub)
	}
	switch {
	case l.pub == b.n:
		return b
	case l.pub == 0:
		return b.prev
	}
	rest := l.take(len(b.buf) - int(b.recs[l.pub].off))
	base := b.recs[l.pub].off
	rest.buf = append(rest.buf, b.buf[base:]...)
	for i := l.pub; i < b.n; i++ {
		r := &b.recs[i]
		if r.Frames == 0 {
			b.quiet--
		}
		off := int(r.off - base)
		l.place(rest, r, off)
	}
	clear(b.recs[l.pub:b.n])
	b.n, b.buf = l.pub, b.buf[:base]
	l.insert(rest, b)
	return b
}

// front moves published to the start of b when b was put where published was.
func (l *Log[T]) front(b, after *block[T]) {
	if l.cur == nil || after == l.cur {
		return // the cursor will walk into b
	}
	if l.at == l.cur && l.ack == l.pub {
		l.at, l.ack = b, 0
	}
	l.cur, l.pub = b, 0
}
