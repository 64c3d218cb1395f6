package nullserver

import (
	"bytes"
	"fmt"
	"time"
)

// leastPause is what a sleep must at least be worth: shorter ones take longer than they should.
const leastPause = 5 * time.Millisecond

// pause lets n bytes take as long as the pace says. debt is what is still to be slept for.
func (s *Server) pause(debt *time.Duration, n int) {
	if s.pace <= 0 {
		return
	}
	*debt += time.Duration(float64(n) / float64(s.pace) * float64(time.Second))
	if *debt < leastPause {
		return
	}
	from := time.Now()
	time.Sleep(*debt)
	*debt -= time.Since(from)
}

// setValue is what FDVALUE does.
func (s *Server) setValue(n int) {
	if n == 0 {
		s.value.Store(nil)
		return
	}
	reply := fmt.Appendf(nil, "$%d\r\n%s\r\n", n, bytes.Repeat([]byte("v"), n))
	s.value.Store(&reply)
}
