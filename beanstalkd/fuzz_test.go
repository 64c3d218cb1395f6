package beanstalkd

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// FuzzReply holds all commands to: no panic on any reply that a Scanner lets through, in one frame or behind that of a
// `use`; what cannot be the reply cuts the connection and leaves open whether the command was carried out; and nothing
// of the frames is kept.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"INSERTED 1\r\n", "BURIED 7\r\n", "BURIED\r\n", "RESERVED 3 5\r\nhello\r\n", "OK 14\r\n---\n- default\n\r\n", "OK 9\r\n---\na: b\n\r\n", "USING t\r\nINSERTED 2\r\n",
		"USING u\r\nINSERTED 2\r\n", "OUT_OF_MEMORY\r\nINSERTED 2\r\n", "DRAINING\r\n", "BAD_FORMAT\r\nUNKNOWN_COMMAND\r\n", "KICKED 18446744073709551615\r\n", "KICKED\r\n", "TIMED_OUT\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		p := NewProtocol()
		var before []byte
		for rest := stream; ; {
			n, need, _, err := p.Next(rest)
			if err != nil || n == 0 {
				require.True(t, err != nil || need > len(rest))
				return
			}
			frame := rest[:n:n]
			rest = rest[n:]
			_ = p.Verdict(frame, true)
			for v := range verbID(len(table)) {
				if v != noVerb {
					c := newCmd(v)
					c.lent = true
					answerWith(t, c, frame)
				}
			}
			answerWith(t, &Put{}, frame)
			if before != nil {
				both := append(append([]byte(nil), before...), frame...)
				answerWith(t, &Put{place: place{use: "t", bound: true}}, both)
				answerWith(t, &Cmd{id: vPeekReady, place: place{use: "t", bound: true}}, both)
			}
			before = frame
		}
	})
}

func answerWith(t *testing.T, cmd fdengine.Command, frames []byte) {
	v := cmd.(fdengine.Verdicter).Verdict(frames, false)
	shown := append([]byte(nil), frames...)
	err := cmd.DecodeReply(fdengine.Reply{Frame: shown, Sends: 1})
	clear(shown)
	_, odd := err.(*UnexpectedError)
	if odd {
		require.Equal(t, fdengine.Cut, v.Conn, "%q: %v", frames, err)
		require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err))
	} else if err != nil {
		require.Equal(t, carry.Answered, fdengine.FateOf(err), "%q: %v", frames, err)
	}
	switch c := cmd.(type) {
	case *Put:
		_, elsewhere := err.(*WrongTubeError)
		if err != nil && !elsewhere {
			require.Zero(t, c.ID, "%q: %v", frames, err)
		}
	case *Cmd:
		id, body, jobErr := c.Job()
		require.Equal(t, err, jobErr)
		if err == nil && len(body) > 0 {
			require.Contains(t, string(frames), string(body), "the frame was kept (job %d)", id)
		}
		_, _ = c.Count()
		_, _ = c.Text()
		_, _ = c.Stats()
		_, _ = c.List()
	}
}

// FuzzRequest holds commands to: whatever names, numbers and times they are given, they are refused or become exactly
// one line each, with the body that was meant.
func FuzzRequest(f *testing.F) {
	f.Add("tube", []byte("body"), uint64(1), int64(time.Second))
	f.Add("t\r\nquit", []byte("\r\nquit\r\n"), uint64(1<<63), int64(-1))
	f.Fuzz(func(t *testing.T, tube string, body []byte, n uint64, d int64) {
		span := time.Duration(d)
		for _, cmd := range []*Cmd{
			Peek(n), PeekReady(tube), PeekDelayed(tube), PeekBuried(tube), Kick(tube, int(n)), KickJob(n), PauseTube(tube, span), ServerStats(), StatsJob(n), StatsTube(tube), ListTubes(),
			ListTubeUsed(), ListTubesWatched(), Delete(n), Reserve(), ReserveWithTimeout(span), ReserveJob(n), Release(n, uint32(n), span), Bury(n, uint32(n)), Touch(n), Watch(tube), Ignore(tube),
		} {
			cmd.lent = true
			b, err := cmd.AppendRequest(nil)
			if err != nil {
				require.Empty(t, b, cmd.Name())
				continue
			}
			lines := 1
			if cmd.Spec().Frames == 2 {
				lines = 2
			}
			require.Equal(t, lines, strings.Count(string(b), "\n"), "%q", b)
			require.Equal(t, lines, strings.Count(string(b), "\r\n"), "%q", b)
			require.True(t, strings.HasSuffix(string(b), "\r\n"))
		}
		p := &Put{Body: body, Tube: tube, Delay: span, TTR: span, Priority: uint32(n)}
		b, err := p.AppendRequest(nil)
		if err != nil {
			require.Empty(t, b)
			return
		}
		require.True(t, strings.HasSuffix(string(b), "\r\n"+string(body)+"\r\n"), "%q", b)
		head := string(b[:len(b)-len(body)-2])
		require.Equal(t, p.Spec().Frames == 2, strings.HasPrefix(head, "use "))
		require.Equal(t, max(1, p.Spec().Frames), strings.Count(head, "\r\n"), "%q", head)
	})
}

// FuzzOptions holds Validate to: no panic, and what it accepts makes a Client, or a Consumer of tubes with legal names.
func FuzzOptions(f *testing.F) {
	f.Add("localhost:11300", "tcp", "default", "a", 0, int64(0))
	f.Add("", "udp", "-x", "a b", 1<<40, int64(-1))
	f.Fuzz(func(t *testing.T, addr, network, tube, watched string, size int, d int64) {
		o := Options{Addr: addr, Network: network, Tube: tube, MaxJobSize: size, KeepAlive: time.Duration(d), UserTimeout: time.Duration(d)}
		valid := o.Validate() == nil
		c, err := New(o)
		require.Equal(t, valid, err == nil)
		if err == nil {
			end(t, c)
		}
		consumer, err := NewConsumer(o, watched)
		require.Equal(t, valid && beanstalk.CheckName(watched) == nil, err == nil)
		if err == nil {
			end(t, consumer)
		}
	})
}
