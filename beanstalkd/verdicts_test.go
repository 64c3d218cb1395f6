package beanstalkd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

var (
	deliver   = fdengine.Verdict{}
	refusedNo = fdengine.Verdict{Ran: fdengine.RanNo}
	again     = fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}
	elsewhere = fdengine.Verdict{Then: fdengine.Reroute, Ran: fdengine.RanNo}
	outOfStep = fdengine.Verdict{Ran: fdengine.RanNo, Conn: fdengine.Cut}
	desync    = fdengine.Verdict{Conn: fdengine.Cut}
	retire    = fdengine.Verdict{Conn: fdengine.Retire}
)

// Covers: S0-15
func TestEachReplyHasTheVerdictOfTheTable(t *testing.T) {
	golden := []struct {
		reply string
		want  fdengine.Verdict
	}{
		{"INSERTED 1", deliver},
		{"BURIED 1", deliver},
		{"DRAINING", elsewhere},
		{"OUT_OF_MEMORY", again},
		{"JOB_TOO_BIG", refusedNo},
		{"EXPECTED_CRLF", outOfStep},
		{"BAD_FORMAT", outOfStep},
		{"UNKNOWN_COMMAND", outOfStep},
		{"INTERNAL_ERROR", retire},
		{"NOT_FOUND", refusedNo},
		{"TIMED_OUT", deliver},
		{"DEADLINE_SOON", deliver},
		{"NOT_IGNORED", refusedNo},
	}
	p := NewProtocol()
	seen := map[beanstalk.Word]bool{}
	for _, g := range golden {
		frame := []byte(g.reply + "\r\n")
		for _, maybe := range []bool{false, true} {
			require.Equal(t, g.want, p.Verdict(frame, maybe), g.reply)
		}
		r, _, err := beanstalk.Parse(frame)
		require.NoError(t, err)
		seen[r.Word] = true
		_, _, kind, err := NewProtocol().Next(frame)
		require.NoError(t, err)
		require.Equal(t, r.Word.Refusal(), kind == fdengine.KindRefusal)
	}
	for w := beanstalk.Word(1); w.String() != ""; w++ {
		require.True(t, seen[w] || !w.Refusal(), "refusal %v has no row", w)
	}
	require.Equal(t, desync, p.Verdict([]byte("what\r\n"), false))
	require.Len(t, refusals(), 9)
}

func TestAPutInATubeIsJudgedByBothItsReplies(t *testing.T) {
	for _, tc := range []struct {
		frames string
		want   fdengine.Verdict
		err    any // an error type to find, or nil
		id     uint64
	}{
		{"USING a\r\nINSERTED 7\r\n", deliver, nil, 7},
		{"USING a\r\nBURIED 7\r\n", deliver, nil, 7},
		{"USING a\r\nDRAINING\r\n", elsewhere, new(*ServerError), 0},
		{"USING a\r\nOUT_OF_MEMORY\r\n", again, new(*ServerError), 0},
		{"USING a\r\nINTERNAL_ERROR\r\n", retire, new(*ServerError), 0},
		{"USING a\r\nEXPECTED_CRLF\r\n", outOfStep, new(*ServerError), 0},
		// The tube was refused, and the job stored in another: never again.
		{"OUT_OF_MEMORY\r\nINSERTED 7\r\n", deliver, new(*WrongTubeError), 7},
		{"OUT_OF_MEMORY\r\nBURIED 7\r\n", deliver, new(*WrongTubeError), 7},
		{"INTERNAL_ERROR\r\nINSERTED 7\r\n", retire, new(*WrongTubeError), 7},
		{"BAD_FORMAT\r\nINSERTED 7\r\n", desync, new(*WrongTubeError), 7},
		// Both were refused.
		{"OUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\n", again, new(*ServerError), 0},
		{"OUT_OF_MEMORY\r\nDRAINING\r\n", again, new(*ServerError), 0},
		{"OUT_OF_MEMORY\r\nINTERNAL_ERROR\r\n", fdengine.Verdict{Then: fdengine.RetryHere, Conn: fdengine.Retire}, new(*ServerError), 0},
		{"BAD_FORMAT\r\nUNKNOWN_COMMAND\r\n", outOfStep, new(*ServerError), 0},
		// Not the replies to these two.
		{"USING b\r\nINSERTED 7\r\n", desync, new(*UnexpectedError), 0},
		{"INSERTED 6\r\nINSERTED 7\r\n", desync, new(*UnexpectedError), 0},
		{"USING a\r\nDELETED\r\n", desync, new(*UnexpectedError), 0},
		{"USING a\r\nBURIED\r\n", desync, new(*UnexpectedError), 0},
		{"USING a\r\nNOT_FOUND\r\n", desync, new(*UnexpectedError), 0},
	} {
		p := &Put{Tube: "a"}
		require.Equal(t, 2, p.Spec().Frames)
		require.Equal(t, tc.want, p.Verdict([]byte(tc.frames), false), "%q", tc.frames)
		err := p.DecodeReply(fdengine.Reply{Frame: []byte(tc.frames), Sends: 1})
		require.Equal(t, tc.id, p.ID, "%q", tc.frames)
		if tc.err == nil {
			require.NoError(t, err)
		} else {
			require.ErrorAs(t, err, tc.err, "%q", tc.frames)
		}
	}
}

func TestAReplyOfAnotherCommandCutsTheConnection(t *testing.T) {
	samples := map[beanstalk.Word]string{
		beanstalk.Inserted: "INSERTED 1", beanstalk.Buried: "BURIED", beanstalk.Using: "USING default", beanstalk.Reserved: "RESERVED 1 0\r\n",
		beanstalk.Found: "FOUND 1 0\r\n", beanstalk.OK: "OK 0\r\n", beanstalk.Watching: "WATCHING 1", beanstalk.Kicked: "KICKED 1",
	}
	for id := noVerb + 1; id < verbs; id++ {
		v := table[id]
		require.NotEmpty(t, v.name)
		for w := beanstalk.Word(1); w.String() != ""; w++ {
			text, ok := samples[w]
			if !ok {
				text = w.String()
			}
			c := newCmd(id)
			got := c.Verdict([]byte(text+"\r\n"), false)
			err := c.DecodeReply(fdengine.Reply{Frame: []byte(text + "\r\n"), Sends: 1})
			if v.can.has(w) || inTrouble.has(w) {
				require.Equal(t, judge(w), got, "%s answered %v", v.name, w)
				require.NotErrorAs(t, err, new(*UnexpectedError))
			} else {
				require.Equal(t, desync, got, "%s answered %v", v.name, w)
				require.ErrorAs(t, err, new(*UnexpectedError))
			}
		}
	}
}

func TestADeleteThatIsSentAgainAndFindsNothingIsDone(t *testing.T) {
	nothing := []byte("NOT_FOUND\r\n")
	c := Delete(1)
	require.ErrorIs(t, c.DecodeReply(fdengine.Reply{Frame: nothing, Sends: 1}), ErrNotFound)
	require.False(t, c.Replayed())
	require.ErrorIs(t, c.DecodeReply(fdengine.Reply{Frame: nothing, Sends: 2}), ErrNotFound, "the first send was refused")
	require.NoError(t, c.DecodeReply(fdengine.Reply{Frame: nothing, Sends: 2, Maybe: true}))
	require.True(t, c.Replayed())
	require.ErrorIs(t, KickJob(1).DecodeReply(fdengine.Reply{Frame: nothing, Sends: 2, Maybe: true}), ErrNotFound)
}
