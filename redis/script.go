package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

// Script is the source of a Lua script and its digest. It does not change and may be used by any goroutine.
type Script struct {
	source string
	digest string
	class  carry.Class
	read   bool
	whole  bool
}

// NewScript makes a Script that is NoRetry: it may run once.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source: source, digest: hex.EncodeToString(sum[:])}
}

// AllowReplay returns a Script that may run twice without harm.
func (s *Script) AllowReplay() *Script {
	c := *s
	c.class = carry.Replay
	return &c
}

// ReadOnly returns a Script that writes nothing: it is sent as EVALSHA_RO and EVAL_RO, for redis 7.0 and later, and
// may run twice.
func (s *Script) ReadOnly() *Script {
	c := *s.AllowReplay()
	c.read = true
	return &c
}

// RefusedWhole returns a Script of which the caller vouches what the type RefusedWhole says. EvalScript heeds it; a
// command that EvalSha or Eval made is to be wrapped in a RefusedWhole before it is submitted.
func (s *Script) RefusedWhole() *Script {
	c := *s
	c.whole = true
	return &c
}

// Digest is the SHA-1 of the source, in hexadecimal.
func (s *Script) Digest() string { return s.digest }

// EvalSha makes the command that runs the script where the server knows it, and is answered NOSCRIPT where it does
// not. For Submit, a Stream or a Tx, after a Load.
func (s *Script) EvalSha(keys []string, args ...any) *Cmd {
	return s.call("EVALSHA", s.digest, keys, args)
}

// Eval makes the command that runs the script and lets the server know it.
func (s *Script) Eval(keys []string, args ...any) *Cmd { return s.call("EVAL", s.source, keys, args) }

// Load makes the command that lets the server know the script.
func (s *Script) Load() *Cmd { return Build("SCRIPT").Arg("LOAD").Arg(s.source) }

func (s *Script) call(name, script string, keys []string, args []any) *Cmd {
	if s.read {
		name += "_RO"
	}
	c := putAll(Build(name).Arg(script).ArgInt(int64(len(keys))), keys).Args(args...)
	return c.WithClass(s.class)
}

// EvalScript runs a script by its digest, and where the server does not know it, by its source: that answer proves
// that nothing ran. It returns the command with its reply, and the error of Do.
func (c *Client) EvalScript(ctx context.Context, s *Script, keys []string, args ...any) (*Cmd, error) {
	cmd := s.EvalSha(keys, args...)
	err := c.Do(ctx, s.vouched(cmd))
	if unknownScript(err) {
		cmd = s.Eval(keys, args...)
		err = c.Do(ctx, s.vouched(cmd))
	}
	return cmd, err
}

// vouched is cmd with what the caller vouches for.
func (s *Script) vouched(cmd *Cmd) fdengine.Command {
	if s.whole {
		return RefusedWhole{cmd}
	}
	return cmd
}

// unknownScript says whether err is the server's word that it does not know a script, about the only send there
// was. A script may raise an error of the same code: the words are its own then, or the server adds where it came
// from.
func unknownScript(err error) bool {
	var e *ServerError
	return errors.As(err, &e) && e.Code == "NOSCRIPT" && fdengine.FateOf(err) == carry.Answered &&
		strings.EqualFold(strings.TrimRight(e.Message, "."), "No matching script. Please use EVAL")
}
