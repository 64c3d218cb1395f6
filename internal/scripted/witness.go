package scripted

import (
	"maps"
	"slices"
)

// Executions is how often token was executed, over all connections. Refused requests do not count.
func (s *Server) Executions(token string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.executed[token]
}

// AllExecutions is Executions for every token that was executed.
func (s *Server) AllExecutions() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.executed)
}

// Order is the tokens in the order of their executions, across connections.
func (s *Server) Order() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.order)
}

// Executed is the number of executions, len(Order()) without the copy.
func (s *Server) Executed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.order)
}

// Conns is how many connections were accepted so far.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.conns)
}

// OpenConns is how many of them have not ended.
func (s *Server) OpenConns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.mu.conns {
		if !c.st.ended {
			n++
		}
	}
	return n
}

// Conn is the i-th accepted connection, from 0; nil when there is none.
func (s *Server) Conn(i int) *ServerConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i < 0 || i >= len(s.mu.conns) {
		return nil
	}
	return s.mu.conns[i]
}

// Requests is every whole request that arrived on connection i, handshake included, in order; nil when there is
// no such connection.
func (s *Server) Requests(i int) []Request {
	c := s.Conn(i)
	if c == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(c.st.log)
}

// ConnLog is the words of Requests(i).
func (s *Server) ConnLog(i int) [][]string {
	var out [][]string
	for _, r := range s.Requests(i) {
		out = append(out, r.Args)
	}
	return out
}

// ConnTokens is the tokens of Requests(i) without those of handshake verbs.
func (s *Server) ConnTokens(i int) []string {
	var out []string
	for _, r := range s.Requests(i) {
		if !r.Handshake {
			out = append(out, r.Token())
		}
	}
	return out
}

// Arrived is how many requests arrived on all connections, handshake included.
func (s *Server) Arrived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.mu.arrivals)
}

// MaxUnanswered is the largest number of requests, handshake left out, that one connection had sent and had no
// reply for. It never exceeds what the client had in flight.
func (s *Server) MaxUnanswered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.maxUnansw
}

// execute counts token, unless c was closed: what a killed connection had queued must not run.
func (s *Server) execute(c *ServerConn, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.st.ended {
		return false
	}
	s.mu.executed[token]++
	s.mu.order = append(s.mu.order, token)
	s.changeLocked()
	return true
}
