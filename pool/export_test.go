package pool

// ReapTimerStopped stops the reap timer and says whether it was not armed.
func (p *Pool) ReapTimerStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.timer == nil || !p.mu.timer.Stop()
}
