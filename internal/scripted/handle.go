package scripted

// handle does with one request what the knobs, the script or the default say.
func (c *ServerConn) handle(r Request) {
	c.s.mu.Lock()
	refuse := c.s.mu.refuseAll
	if !r.Handshake {
		c.s.mu.seen[r.Token()]++
		r.Attempt = c.s.mu.seen[r.Token()]
	}
	c.s.mu.Unlock()

	var a Action
	switch {
	case refuse != "":
		a.Refuse = refuse
	case r.Handshake:
		if c.s.o.OnHandshake != nil {
			a = c.s.o.OnHandshake(c, r)
		}
	case c.s.o.Script != nil:
		a = c.s.o.Script(c, r)
	}
	c.act(a, r)
}

func (c *ServerConn) act(a Action, r Request) {
	if a.Delay > 0 {
		c.flush()
		if !c.pause(a.Delay) {
			return
		}
	}
	c.emit(a.PushBefore)
	switch {
	case a.Refuse != "":
		c.emit([]byte("-" + a.Refuse + "\r\n"))
		c.answer(r)
		c.finish(a, a.Close)
		return
	case a.DropBefore:
		c.finish(a, true)
		return
	}
	if !r.Handshake && !c.s.execute(c, r.Token()) {
		return
	}
	switch {
	case a.DropAfter:
		c.finish(a, true)
		return
	case a.HalfReply:
		whole := c.reply(a, r)
		c.emit(whole[:len(whole)/2])
		c.finish(a, true)
		return
	case a.Stall:
		c.flush()
		c.s.mu.Lock()
		c.st.stalled = true
		c.s.mu.Unlock()
		return
	case a.Mute:
		c.flush()
		c.muted = true
		return
	case !a.NoReply:
		c.emit(c.reply(a, r))
		c.emit(a.Surplus)
	}
	c.emit(a.PushAfter)
	c.answer(r)
	c.finish(a, a.Close)
}

// reply is the answer of an executed request.
func (c *ServerConn) reply(a Action, r Request) []byte {
	if a.Reply != nil {
		return a.Reply
	}
	if !r.Handshake {
		return AppendBulk(nil, r.Token())
	}
	if raw := c.client(r); raw != nil {
		return raw
	}
	return []byte(c.s.o.Handshake[r.Verb()])
}

func (c *ServerConn) emit(raw []byte) {
	if !c.muted {
		c.out = append(c.out, raw...)
	}
}

// answer notes that r needs no answer any more once out is written. A muted connection answers nothing.
func (c *ServerConn) answer(r Request) {
	if !r.Handshake && !c.muted {
		c.answered++
	}
}

// finish ends the connection, when asked, after writing what is gathered.
func (c *ServerConn) finish(a Action, end bool) {
	if !end {
		return
	}
	c.flush()
	c.end(a.Reset)
}
