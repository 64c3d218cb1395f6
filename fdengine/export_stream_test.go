package fdengine

// Flushing is how many calls of Flush the stream remembers.
func (s *Stream) Flushing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.empty)
}
