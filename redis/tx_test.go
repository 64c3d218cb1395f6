package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

const queued = "+QUEUED\r\n"

// Covers: E-18
func TestATransactionIsOneRecordOfAllItsFrames(t *testing.T) {
	tx := NewTx(Set("k", "v"), Incr("n")).WithBudget(2).WithTimeout(time.Second)
	require.Equal(t, fdengine.Spec{Frames: 4, Budget: 2, Timeout: time.Second}, tx.Spec())
	got, err := tx.AppendRequest(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"MULTI", "SET k v", "INCR n", "EXEC"}, encoded(t, got))
	require.Equal(t, carry.NoRetry, tx.AllowReplay().Spec().Class, "one command of it must not run twice")
	tx = NewTx(Set("k", "v"), Get("k"))
	require.Equal(t, carry.NoRetry, tx.Spec().Class, "nobody vouched for it")
	require.Equal(t, carry.Replay, tx.AllowReplay().Spec().Class)
}

func TestATransactionThatCannotBeSentWritesNothing(t *testing.T) {
	for _, tx := range []*Tx{NewTx(), NewTx(Get("a"), NewCmd("SET", nil)), NewTx(make([]*Cmd, maxTx+1)...)} {
		got, err := tx.AppendRequest([]byte("x"))
		require.Error(t, err)
		require.Equal(t, "x", string(got))
	}
}

func TestEachCommandOfATransactionGetsItsReply(t *testing.T) {
	a, b, c := Set("k", "v"), Incr("n"), HGetAll("h")
	tx := NewTx(a, b, c)
	_, err := tx.AppendRequest(nil)
	require.NoError(t, err)
	frames := []byte(ok + queued + queued + queued + "*3\r\n" + ok + ":7\r\n|1\r\n+a\r\n+b\r\n%1\r\n+f\r\n*0\r\n")
	require.Equal(t, fdengine.Verdict{}, tx.Verdict(frames, false))
	require.NoError(t, tx.DecodeReply(fdengine.Reply{Frame: frames}))
	require.NoError(t, a.Err())
	n, err := b.Int64()
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
	m, err := c.Map()
	require.NoError(t, err)
	require.Len(t, m, 1)
	require.Equal(t, []*Cmd{a, b, c}, tx.Cmds())
}

// Covers: E-18
func TestAnErrorInsideExecIsAnAnswerAndTheOthersTookEffect(t *testing.T) {
	a, b := Set("k", "v"), Incr("s")
	tx := NewTx(a, b).AllowReplay()
	frames := []byte(ok + queued + queued + "*2\r\n" + ok + "-READONLY odd but inside\r\n")
	require.Equal(t, fdengine.Verdict{}, tx.Verdict(frames, true), "never to be sent again")
	err := tx.DecodeReply(fdengine.Reply{Frame: frames})
	var te *TxError
	require.ErrorAs(t, err, &te)
	require.Equal(t, 1, te.Index)
	require.False(t, te.Aborted)
	var se *ServerError
	require.ErrorAs(t, err, &se)
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
	require.NoError(t, a.Err())
	require.Equal(t, se, b.Err())
}

func TestTheQueueTimeErrorDecidesAboutADiscardedTransaction(t *testing.T) {
	const abort = "-EXECABORT Transaction discarded because of previous errors.\r\n"
	retry := fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}
	newConn := fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo, Conn: fdengine.Retire}
	retired := fdengine.Verdict{Ran: fdengine.RanNo, Conn: fdengine.Retire}
	for name, tc := range map[string]struct {
		frames string
		v      fdengine.Verdict
		index  int
		code   string
	}{
		"loading at queueing":     {ok + queued + "-LOADING x\r\n" + abort, retry, 1, "LOADING"},
		"read only at queueing":   {ok + "-READONLY x\r\n" + queued + abort, newConn, 0, "READONLY"},
		"out of memory":           {ok + "-OOM x\r\n-OOM x\r\n" + abort, fdengine.Verdict{}, 0, "OOM"},
		"caller error":            {ok + queued + "-ERR unknown command\r\n" + abort, fdengine.Verdict{}, 1, "ERR"},
		"read only at EXEC":       {ok + queued + queued + "-EXECABORT Transaction discarded because of: READONLY x\r\n", newConn, -1, "READONLY"},
		"no replicas at EXEC":     {ok + queued + queued + "-EXECABORT Transaction discarded because of: NOREPLICAS x\r\n", retry, -1, "NOREPLICAS"},
		"no reason given":         {ok + queued + queued + abort, fdengine.Verdict{}, -1, "EXECABORT"},
		"all refused, no login":   {strings.Repeat("-NOAUTH x\r\n", 4), retired, 0, "NOAUTH"},
		"all refused, loading":    {strings.Repeat("-LOADING x\r\n", 4), retry, 0, "LOADING"},
		"behind a frame of a hop": {ok + ok + queued + "-TRYAGAIN x\r\n" + abort, retry, 1, "TRYAGAIN"},
		"behind a refused frame":  {"-ERR x\r\n" + ok + queued + "-TRYAGAIN x\r\n" + abort, retry, 1, "TRYAGAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := Set("k", "v"), Incr("n")
			tx := NewTx(a, b)
			require.Equal(t, tc.v, tx.Verdict([]byte(tc.frames), false))
			err := tx.DecodeReply(fdengine.Reply{Frame: []byte(tc.frames)})
			var te *TxError
			require.ErrorAs(t, err, &te)
			require.True(t, te.Aborted)
			require.Equal(t, tc.index, te.Index)
			var se *ServerError
			require.ErrorAs(t, err, &se)
			require.Equal(t, tc.code, se.Code)
			require.Equal(t, err, a.Err())
			require.Equal(t, err, b.Err())
		})
	}
	moved := NewTx(Get("a")).Verdict([]byte(ok+"-ASK 5 h:1\r\n"+abort), false)
	require.Equal(t, fdengine.Reroute, moved.Then)
	require.Equal(t, "h:1", moved.Hint.Addr)
	require.Equal(t, 1, moved.Hint.Frames)
}

// When MULTI itself is refused (a missing right, for one), the server runs what follows one by one.
func TestCommandsThatRanBecauseMultiWasRefusedAreNeverSentAgain(t *testing.T) {
	a, b := Set("k", "v"), Incr("n")
	tx := NewTx(a, b)
	frames := []byte("-LOADING no\r\n" + ok + "-ERR x\r\n-ERR EXEC without MULTI\r\n")
	require.Equal(t, fdengine.Verdict{}, tx.Verdict(frames, false))
	err := tx.DecodeReply(fdengine.Reply{Frame: frames})
	var te *TxError
	require.ErrorAs(t, err, &te)
	require.False(t, te.Aborted)
	require.NoError(t, a.Err())
	require.Error(t, b.Err())
	retire := tx.Verdict([]byte("-READONLY no\r\n"+ok+ok+"-ERR EXEC without MULTI\r\n"), false)
	require.Equal(t, fdengine.Verdict{Conn: fdengine.Retire}, retire)
}

func TestRepliesThatAreNotThoseOfATransactionFailAllItsCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		frames string
		want   error
	}{
		"null":           {ok + queued + queued + "*-1\r\n", ErrTxAborted},
		"null, RESP3":    {ok + queued + queued + "_\r\n", ErrTxAborted},
		"too few":        {ok + queued + queued + "*1\r\n+OK\r\n", nil},
		"no array":       {ok + queued + queued + "+OK\r\n", nil},
		"frames missing": {ok + queued + "*0\r\n", nil},
		"not whole":      {ok + queued + queued + "*2\r\n+OK", nil},
	} {
		a, b := Set("k", "v"), Incr("n")
		tx := NewTx(a, b)
		require.Equal(t, fdengine.Verdict{}, tx.Verdict([]byte(tc.frames), false), name)
		err := tx.DecodeReply(fdengine.Reply{Frame: []byte(tc.frames)})
		require.Error(t, err, name)
		if tc.want != nil {
			require.ErrorIs(t, err, tc.want, name)
		}
		require.Equal(t, err, a.Err(), name)
		require.Equal(t, err, b.Err(), name)
	}
}
