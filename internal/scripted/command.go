package scripted

import (
	"runtime"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// Cmd is an fdengine.Command: VERB TOKEN ARGS..., answered by the token. It records what it was given. Its
// fields are not locked on purpose: the race detector sees an engine that touches a command after it let go of it.
type Cmd struct {
	Verb   string     // default ECHO
	Token  string     // what the server counts and answers
	Args   []string   // further words
	Prefix [][]string // whole requests in front, in the same record; say so in Traits.Frames and Traits.Skip
	Traits fdengine.Spec

	// What goes wrong on demand.
	SpecPanic    any
	EncodeErr    error
	EncodePanic  any
	DecodeErr    error // returned by DecodeReply after it recorded the reply
	DecodePanic  any
	DecodeGoexit bool
	OnDecode     func(r fdengine.Reply) // runs first in DecodeReply, may block

	// What happened.
	Encodes int
	Decodes int
	Reply   string // the decoded reply: text of a simple or bulk string or number; raw bytes of anything else
	Nil     bool   // the reply was a null
	Raw     string // the whole frame or frames
	Sends   int    // Reply.Sends
	Maybe   bool   // Reply.Maybe
}

var (
	_ fdengine.Command   = (*Cmd)(nil)
	_ fdengine.Speccer   = (*Cmd)(nil)
	_ fdengine.Verdicter = (*JudgingCmd)(nil)
)

// Echo is a Cmd with a token: NoRetry, one reply.
func Echo(token string) *Cmd { return &Cmd{Token: token} }

// ReplayEcho is an Echo that may run again, with the engine's budget.
func ReplayEcho(token string) *Cmd {
	return &Cmd{Token: token, Traits: fdengine.Spec{Class: carry.Replay}}
}

// Ping makes the command of a ping; it fits Options.Ping.
func Ping() fdengine.Command { return &words{"PING"} }

func (c *Cmd) Spec() fdengine.Spec {
	if c.SpecPanic != nil {
		panic(c.SpecPanic)
	}
	return c.Traits
}

func (c *Cmd) AppendRequest(dst []byte) ([]byte, error) {
	c.Encodes++
	if c.EncodePanic != nil {
		panic(c.EncodePanic)
	}
	if c.EncodeErr != nil {
		return nil, c.EncodeErr
	}
	for _, p := range c.Prefix {
		dst = AppendRequest(dst, p...)
	}
	verb := c.Verb
	if verb == "" {
		verb = "ECHO"
	}
	return AppendRequest(dst, append([]string{verb, c.Token}, c.Args...)...), nil
}

// DecodeReply records the reply. An error line becomes a *ServerError.
func (c *Cmd) DecodeReply(r fdengine.Reply) error {
	c.Decodes++
	if c.OnDecode != nil {
		c.OnDecode(r)
	}
	if c.DecodeGoexit {
		runtime.Goexit()
	}
	if c.DecodePanic != nil {
		panic(c.DecodePanic)
	}
	c.Sends, c.Maybe, c.Raw = r.Sends, r.Maybe, string(r.Frame)
	var err error
	c.Reply, c.Nil, err = decode(r.Frame)
	if c.DecodeErr != nil {
		return c.DecodeErr
	}
	return err
}

// JudgingCmd is a Cmd that judges its own reply.
type JudgingCmd struct {
	Cmd
	Judge func(frames []byte, maybe bool) fdengine.Verdict
}

func (c *JudgingCmd) Verdict(frames []byte, maybe bool) fdengine.Verdict {
	return c.Judge(frames, maybe)
}

// ServerError is an error line of the server, without '-' and CRLF.
type ServerError struct{ Line string }

func (e *ServerError) Error() string { return e.Line }

// Fate is Answered: the server spoke.
func (e *ServerError) Fate() carry.Fate { return carry.Answered }

// words is a bare request.
type words []string

func (w *words) AppendRequest(dst []byte) ([]byte, error) { return AppendRequest(dst, *w...), nil }

func (w *words) DecodeReply(r fdengine.Reply) error {
	_, _, err := decode(r.Frame)
	return err
}

// decode reads the first frame of raw; more than one frame, and aggregates, are given as they are.
func decode(raw []byte) (text string, null bool, err error) {
	var p Protocol
	n, _, kind, err := p.Next(raw)
	if err != nil {
		return "", false, err
	}
	if n == 0 || n != len(raw) {
		return string(raw), false, nil
	}
	line, rest := cutLine(raw)
	switch {
	case kind == fdengine.KindRefusal && raw[0] == '!':
		return "", false, &ServerError{Line: string(rest[:len(rest)-2])}
	case kind == fdengine.KindRefusal:
		return "", false, &ServerError{Line: line}
	}
	switch raw[0] {
	case '_':
		return "", true, nil
	case '$', '*':
		if line == "-1" {
			return "", true, nil
		}
		if raw[0] == '$' {
			return string(rest[:len(rest)-2]), false, nil
		}
	case '+', ':', '#', ',', '(':
		return line, false, nil
	}
	return string(raw), false, nil
}
