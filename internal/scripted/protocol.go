package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fdengine/fullduplex/fdengine"
)

// Protocol is an fdengine.Protocol for RESP2 and RESP3 frames. It remembers how far it has looked, so that a
// frame that arrives in pieces is scanned once. Scanned counts the header bytes it looked at, to prove that.
type Protocol struct {
	Scanned int

	pos   int // in the current frame, behind what was parsed
	look  int // behind the bytes in which no line end was found
	stack []level
	kind  fdengine.Kind
}

// level is an aggregate that is not complete.
type level struct {
	left int
	attr bool // an attribute: it is no element of what surrounds it
}

// NewProtocol fits Options.Protocol.
func NewProtocol() fdengine.Protocol { return &Protocol{} }

var errFrame = errors.New("scripted: bad frame")

// limits of a frame.
const (
	maxLength = 1 << 40
	maxDepth  = 128
	maxHeader = 64 << 10
)

// Next finds one frame; see fdengine.Protocol.
func (p *Protocol) Next(buf []byte) (n, need int, kind fdengine.Kind, err error) {
	for {
		end := bytes.IndexByte(buf[max(p.pos, p.look):], '\n')
		if end < 0 {
			p.Scanned += len(buf) - max(p.pos, p.look)
			if len(buf)-p.pos > maxHeader {
				return 0, 0, 0, fmt.Errorf("%w: line without end", errFrame)
			}
			p.look = len(buf)
			return 0, len(buf) + 1, p.soFar(), nil
		}
		end += max(p.pos, p.look)
		p.Scanned += end + 1 - max(p.pos, p.look)
		head := buf[p.pos : end+1]
		if len(head) < 3 || head[len(head)-2] != '\r' {
			return 0, 0, 0, fmt.Errorf("%w: line %q", errFrame, head)
		}
		size, open, err := element(head)
		if err != nil {
			return 0, 0, 0, err
		}
		if end+1+size > len(buf) {
			p.look = end // the header is found again at once
			return 0, end + 1 + size, p.soFar(), nil
		}
		if len(p.stack) == 0 {
			p.kind = kindOf(head[0])
		}
		p.pos, p.look = end+1+size, 0
		if open.left > 0 {
			if len(p.stack) == maxDepth {
				return 0, 0, 0, fmt.Errorf("%w: nested too deep", errFrame)
			}
			p.stack = append(p.stack, open)
			continue
		}
		if open.attr || !p.close() {
			continue
		}
		n, kind = p.pos, p.kind
		p.pos, p.look, p.stack = 0, 0, p.stack[:0]
		return n, 0, kind, nil
	}
}

// soFar is KindPush inside a push: the kind of a frame that is not whole.
func (p *Protocol) soFar() (kind fdengine.Kind) {
	if len(p.stack) > 0 && p.kind == fdengine.KindPush {
		kind = p.kind
	}
	return kind
}

// close counts one element as complete, and those it completes; true when the frame is.
func (p *Protocol) close() bool {
	for len(p.stack) > 0 {
		top := &p.stack[len(p.stack)-1]
		if top.left--; top.left > 0 {
			return false
		}
		attr := top.attr
		p.stack = p.stack[:len(p.stack)-1]
		if attr {
			return false
		}
	}
	return true
}

// element reads a header: the bytes that follow it, or the elements that it opens.
func element(head []byte) (size int, open level, err error) {
	kind, text := head[0], head[1:len(head)-2]
	switch kind {
	case '+', '-', ':', ',', '(', '#', '_':
		return 0, level{}, nil
	case '$', '=', '!', '*', '~', '>', '%', '|':
	default:
		return 0, level{}, fmt.Errorf("%w: type %q", errFrame, kind)
	}
	n, err := strconv.Atoi(string(text))
	null := n == -1 && (kind == '$' || kind == '*')
	switch {
	case err != nil || n > maxLength || n < 0 && !null || len(text) == 0 || text[0] == '+':
		return 0, level{}, fmt.Errorf("%w: length %q", errFrame, text)
	case null:
		return 0, level{}, nil
	}
	switch kind {
	case '$', '=', '!':
		return n + 2, level{}, nil
	case '%':
		return 0, level{left: 2 * n}, nil
	case '|':
		return 0, level{left: 2 * n, attr: true}, nil
	}
	return 0, level{left: n}, nil
}

func kindOf(first byte) fdengine.Kind {
	switch first {
	case '-', '!':
		return fdengine.KindRefusal
	case '>':
		return fdengine.KindPush
	}
	return fdengine.KindReply
}

// cutLine splits a frame into the text of its first line and what follows that line.
func cutLine(frame []byte) (text string, rest []byte) {
	line, rest, _ := bytes.Cut(frame[1:], []byte("\r\n"))
	return string(line), rest
}

// Verdict judges an error line by its first word:
//
//	LOADING TRYAGAIN BUSY CLUSTERDOWN MASTERDOWN NOREPLICAS   again here, did not run
//	READONLY                                                  the same, and the connection retires
//	MOVED slot addr, ASK slot addr, REDIRECT [term=n] addr    elsewhere, did not run
//	ERR Protocol error                                        the stream is lost
//
// All else is delivered. A word retry=ms anywhere in the line becomes After.
func (p *Protocol) Verdict(frame []byte, maybe bool) fdengine.Verdict {
	line, rest := cutLine(frame)
	if frame[0] == '!' {
		line = string(bytes.TrimSuffix(rest, []byte("\r\n")))
	}
	return Judge(line)
}

// Judge is the verdict on an error line without '-' and CRLF.
func Judge(line string) (v fdengine.Verdict) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return v
	}
	switch fields[0] {
	case "LOADING", "TRYAGAIN", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS":
		v.Then, v.Ran = fdengine.RetryHere, fdengine.RanNo
	case "READONLY":
		v.Then, v.Ran, v.Conn = fdengine.RetryHere, fdengine.RanNo, fdengine.Retire
	case "MOVED", "ASK", "REDIRECT":
		v.Then, v.Ran = fdengine.Reroute, fdengine.RanNo
		if fields[0] == "ASK" {
			v.Hint.Prefix, v.Hint.Frames = AppendRequest(nil, "ASKING"), 1
		}
	case "ERR":
		if strings.HasPrefix(line, "ERR Protocol error") {
			v.Conn = fdengine.Cut
		}
	}
	for _, f := range fields[1:] {
		key, value, assigned := strings.Cut(f, "=")
		switch {
		case assigned && key == "retry":
			v.After = millis(value)
		case assigned && key == "term":
			v.Hint.Term, _ = strconv.ParseUint(value, 10, 64)
		case v.Then == fdengine.Reroute && strings.Contains(f, ":"):
			v.Hint.Addr = f
		}
	}
	return v
}
