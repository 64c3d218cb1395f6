package pool

// fence is the session of a connection whose server side may still be executing what it received. A fence is
// pending until a handshake that was given it has succeeded; while any is, no idle connection is lent, so that
// whoever lost the connection cannot replay before the fence.
type fence struct {
	id      uint64 // ascending
	session any
}

// fenceLocked remembers c, removed because of why, if its server side must be fenced.
func (p *Pool) fenceLocked(c *Conn, why error) {
	if why == nil || c.Session == nil || peerClosed(why) || p.mu.closed || p.opts.Handshake == nil {
		return
	}
	p.mu.lastFence++
	p.mu.fences = append(p.mu.fences, fence{p.mu.lastFence, c.Session})
}

// pendingFences returns the sessions to fence, oldest first, and the id of the last.
func (p *Pool) pendingFences() (sessions []any, last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.mu.fences {
		sessions, last = append(sessions, f.session), f.id
	}
	return sessions, last
}

// clearFences forgets the fences up to last: a handshake was given them and succeeded. Idle connections may be
// lent again then.
func (p *Pool) clearFences(last uint64) {
	p.mu.Lock()
	kept := p.mu.fences[:0]
	for _, f := range p.mu.fences {
		if f.id > last {
			kept = append(kept, f)
		}
	}
	clear(p.mu.fences[len(kept):])
	p.mu.fences = kept
	var todo chores
	p.serveLocked(&todo)
	p.mu.Unlock()
	p.do(todo)
}
