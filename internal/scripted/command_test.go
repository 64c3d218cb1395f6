package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

func TestACommandEncodesItsPrefixAndItself(t *testing.T) {
	c := &scripted.Cmd{Verb: "SET", Token: "k", Args: []string{"v"}, Prefix: [][]string{{"ASKING"}},
		Traits: fdengine.Spec{Class: carry.Replay, Frames: 2, Skip: 1}}
	raw, err := c.AppendRequest([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "before*1\r\n$6\r\nASKING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", string(raw))
	require.Equal(t, 1, c.Encodes)
	require.Equal(t, c.Traits, c.Spec())
	require.Equal(t, carry.Replay, scripted.ReplayEcho("x").Spec().Class)
	raw, err = scripted.Ping().AppendRequest(nil)
	require.NoError(t, err)
	require.Equal(t, "*1\r\n$4\r\nPING\r\n", string(raw))
}

func TestACommandRecordsItsReply(t *testing.T) {
	for raw, want := range map[string]scripted.Cmd{
		"$1\r\na\r\n":          {Reply: "a"},
		"+OK\r\n":              {Reply: "OK"},
		":5\r\n":               {Reply: "5"},
		"$-1\r\n":              {Nil: true},
		"*-1\r\n":              {Nil: true},
		"_\r\n":                {Nil: true},
		"*1\r\n:5\r\n":         {Reply: "*1\r\n:5\r\n"},
		"+OK\r\n$1\r\na\r\n":   {Reply: "+OK\r\n$1\r\na\r\n"},
		"-ERR a\r\n-ERR b\r\n": {Reply: "-ERR a\r\n-ERR b\r\n"},
	} {
		c := scripted.Echo("a")
		require.NoError(t, c.DecodeReply(fdengine.Reply{Frame: []byte(raw), Sends: 2, Maybe: true}))
		require.Equal(t, want.Reply, c.Reply, raw)
		require.Equal(t, want.Nil, c.Nil, raw)
		require.Equal(t, raw, c.Raw)
		require.Equal(t, 2, c.Sends)
		require.True(t, c.Maybe)
		require.Equal(t, 1, c.Decodes)
	}
}

func TestAnErrorLineIsAServerErrorThatWasAnswered(t *testing.T) {
	for _, raw := range []string{"-ERR no\r\n", "!6\r\nERR no\r\n"} {
		err := scripted.Echo("a").DecodeReply(fdengine.Reply{Frame: []byte(raw)})
		var se *scripted.ServerError
		require.ErrorAs(t, err, &se)
		require.Equal(t, "ERR no", se.Line)
		require.Equal(t, carry.Answered, fdengine.FateOf(fmt.Errorf("wrapped: %w", err)))
	}
	require.Error(t, scripted.Ping().DecodeReply(fdengine.Reply{Frame: []byte("-LOADING\r\n")}))
}

func TestACommandFailsOnDemand(t *testing.T) {
	boom := errors.New("boom")
	ok := fdengine.Reply{Frame: []byte("+OK\r\n")}
	_, err := (&scripted.Cmd{EncodeErr: boom}).AppendRequest(nil)
	require.ErrorIs(t, err, boom)
	c := &scripted.Cmd{DecodeErr: boom}
	require.ErrorIs(t, c.DecodeReply(ok), boom)
	require.Equal(t, "OK", c.Reply)
	seen := ""
	c = &scripted.Cmd{OnDecode: func(r fdengine.Reply) { seen = string(r.Frame) }, DecodePanic: boom}
	require.ErrorIs(t, panics.Catch("t", func() error { return c.DecodeReply(ok) }), boom)
	require.Equal(t, "+OK\r\n", seen)
	require.ErrorIs(t, panics.Isolate("t", func() error {
		return (&scripted.Cmd{DecodeGoexit: true}).DecodeReply(ok)
	}), panics.ErrGoexit)
	require.ErrorIs(t, panics.Catch("t", func() error {
		_, err := (&scripted.Cmd{EncodePanic: boom}).AppendRequest(nil)
		return err
	}), boom)
	require.ErrorIs(t, panics.Catch("t", func() error { (&scripted.Cmd{SpecPanic: boom}).Spec(); return nil }), boom)
}

func TestAJudgingCommandAnswersForItself(t *testing.T) {
	want := fdengine.Verdict{Then: fdengine.RetryHere}
	c := &scripted.JudgingCmd{Cmd: scripted.Cmd{Token: "x"}, Judge: func(frames []byte, maybe bool) fdengine.Verdict {
		require.True(t, maybe)
		return want
	}}
	var cmd fdengine.Command = c
	require.Equal(t, want, cmd.(fdengine.Verdicter).Verdict(nil, true))
}

func TestALedgerKeepsOutcomesAndCountsDoubles(t *testing.T) {
	boom := errors.New("boom")
	l := scripted.NewLedger()
	a, b := scripted.Echo("a"), scripted.Echo("b")
	go func() {
		l.Complete(a, boom)
		l.Complete(b, nil)
		l.Complete(a, nil)
	}()
	require.NoError(t, l.Wait(t.Context(), 3))
	err, settled := l.Err(a)
	require.True(t, settled)
	require.ErrorIs(t, err, boom, "the first one counts")
	require.Equal(t, 2, l.Times(a))
	require.Equal(t, 1, l.Times(b))
	require.Equal(t, []fdengine.Command{a, b, a}, l.Order())
	_, settled = l.Err(scripted.Echo("a"))
	require.False(t, settled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Wait(ctx, 4), context.Canceled)
}
