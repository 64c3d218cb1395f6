package nullserver

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"time"
)

const (
	readBuffer = 256 << 10
	okReply    = "+OK\r\n"
)

// serve answers one connection until its client leaves, errs, or a hold is over.
func (s *Server) serve(c net.Conn) {
	rw, done, err := blocking(c)
	if err != nil {
		return
	}
	defer done()
	var p parser
	buf := make([]byte, readBuffer)
	many := bytes.Repeat([]byte(s.reply), 8192)
	var out []byte
	var debt time.Duration
	for held := 0; ; {
		n, err := rw.Read(buf[held:])
		if n <= 0 || err != nil {
			return
		}
		held += n
		out = out[:0]
		from, oks, total := 0, 0, 0
		value := s.value.Load()
		for {
			size, words := p.next(buf[from:held])
			if size < 0 {
				return
			}
			if size == 0 {
				break
			}
			from += size
			total++
			if words == nil || len(words[0]) == len("GET") && value == nil {
				oks++
				continue
			}
			for ; oks > 0; oks-- {
				out = append(out, s.reply...)
			}
			if len(words[0]) == len("GET") {
				out = append(out, *value...)
				continue
			}
			total--
			out = s.special(out, words)
		}
		s.pause(&debt, n)
		if total > 0 {
			s.frames.Add(int64(total))
			s.reads.Add(1)
		}
		if from > 0 {
			held = copy(buf, buf[from:held])
		}
		if from == 0 && held == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
		if over, on := s.swallow(int64(total)); over {
			cut(c)
			return
		} else if on {
			oks = 0
		}
		if !s.answer(rw, out, many, oks) {
			return
		}
	}
}

// answer writes out and then the reply oks times, in as few writes as many allows.
func (s *Server) answer(w io.Writer, out, many []byte, oks int) bool {
	if len(out) > 0 {
		for ; oks > 0; oks-- {
			out = append(out, s.reply...)
		}
		_, err := w.Write(out)
		return err == nil
	}
	for left := oks * len(s.reply); left > 0; {
		part := min(left, len(many))
		if _, err := w.Write(many[:part]); err != nil {
			return false
		}
		left -= part
	}
	return true
}

// swallow takes n requests from a hold. on: there is one; over: these were the last.
func (s *Server) swallow(n int64) (over, on bool) {
	if n == 0 || s.hold.Load() <= 0 {
		return false, false
	}
	left := s.hold.Add(-n)
	return left <= 0, true
}

// cut resets the connection: what was not answered is lost.
func cut(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// special answers the commands that are not merely counted.
func (s *Server) special(out []byte, words [][]byte) []byte {
	second := ""
	if len(words) > 1 {
		second = string(bytes.ToUpper(words[1]))
	}
	switch name := string(bytes.ToUpper(words[0])); name {
	case "PING":
		return append(out, "+PONG\r\n"...)
	case "HELLO":
		if second != "2" && second != "3" {
			return append(out, "-NOPROTO unsupported protocol version\r\n"...)
		}
		header := "*14\r\n"
		if second == "3" {
			header = "%7\r\n"
		}
		out = append(out, header...)
		out = append(out, "$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:"...)
		out = append(out, second...)
		out = append(out, "\r\n$2\r\nid\r\n:"...)
		out = strconv.AppendInt(out, s.ids.Add(1), 10)
		return append(out, "\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"...)
	case "CLIENT":
		switch second {
		case "ID":
			return append(strconv.AppendInt(append(out, ':'), s.ids.Add(1), 10), "\r\n"...)
		case "MAINT_NOTIFICATIONS":
			return append(out, "-ERR unknown subcommand\r\n"...)
		case "KILL":
			return append(out, ":0\r\n"...)
		}
		return append(out, okReply...)
	case countedCommand:
		text := strconv.FormatInt(s.frames.Load(), 10) + " " + strconv.FormatInt(s.reads.Load(), 10)
		out = append(append(out, '$'), strconv.Itoa(len(text))...)
		return append(append(append(out, "\r\n"...), text...), "\r\n"...)
	case valueCommand:
		n, err := strconv.Atoi(second)
		if err != nil || n < 0 {
			return append(out, "-ERR a value needs a length\r\n"...)
		}
		s.setValue(n)
		return append(out, okReply...)
	case holdCommand:
		n, err := strconv.ParseInt(second, 10, 64)
		if err != nil || n < 0 {
			return append(out, "-ERR a hold needs a number\r\n"...)
		}
		s.hold.Store(n)
		return append(out, okReply...)
	}
	return append(out, "-ERR unknown command\r\n"...)
}
