package memnet

import "time"

// sendLocked puts c on its way: at once when the lane is neither delayed nor dripping, else behind what is
// already travelling.
func (l *lane) sendLocked(c chunk) {
	if f := &l.faults; f.delay == 0 && f.drip == 0 && len(l.onWay) == 0 {
		l.arriveLocked(c)
		return
	}
	c.due = time.Now().Add(l.faults.delay)
	l.onWay = append(l.onWay, c)
	l.advanceLocked()
}

func (l *lane) arriveLocked(c chunk) {
	if c.end {
		l.endArrived = true
		l.p.mu.lanes[0].wakeLocked() // a writer of the other lane may learn that its reader is gone
		l.p.mu.lanes[1].wakeLocked()
		return
	}
	l.arrived += c.n
	l.readable.Broadcast()
}

// advanceLocked lets everything arrive that is due and sets the timer for the next. Under drip one byte arrives
// per interval.
func (l *lane) advanceLocked() {
	now := time.Now()
	for len(l.onWay) > 0 {
		c := &l.onWay[0]
		due := c.due
		if drip := l.faults.drip; drip > 0 && !c.end {
			if next := l.lastDrip.Add(drip); next.After(due) {
				due = next
			}
		}
		if due.After(now) {
			l.armLocked(due.Sub(now))
			return
		}
		if l.faults.drip > 0 && !c.end && c.n > 1 {
			c.n--
			l.lastDrip = now
			l.arriveLocked(chunk{n: 1})
			continue
		}
		if !c.end {
			l.lastDrip = now
		}
		done := *c
		l.onWay = l.onWay[1:]
		l.arriveLocked(done)
	}
	l.onWay = nil
	l.disarmLocked()
}

func (l *lane) armLocked(after time.Duration) {
	l.disarmLocked()
	gen := l.timerGen
	l.timer = time.AfterFunc(after, func() {
		l.p.mu.Lock()
		defer l.p.mu.Unlock()
		if gen == l.timerGen {
			l.advanceLocked()
		}
	})
}

func (l *lane) disarmLocked() {
	l.timerGen++
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// deadline is one of the two deadlines of an end.
type deadline struct {
	timer   *time.Timer
	gen     int
	expired bool
}

// setLocked moves the deadline; the timer of an older one that fires late changes nothing. wake runs under the
// lock p when the new one passes.
func (d *deadline) setLocked(p *pair, t time.Time, wake func()) {
	d.gen++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.expired = false
	if t.IsZero() {
		return
	}
	after := time.Until(t)
	if after <= 0 {
		d.expired = true
		wake()
		return
	}
	gen := d.gen
	d.timer = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if gen == d.gen {
			d.expired = true
			wake()
		}
	})
}
