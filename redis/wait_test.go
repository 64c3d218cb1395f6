package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

func TestTheBlockTimeOfACommandIsReadWhereTheCommandHasIt(t *testing.T) {
	const forever = -1
	for line, want := range map[string]time.Duration{
		"BLPOP a b 0":                              forever,
		"BLPOP a 1.5":                              1500 * time.Millisecond,
		"brpop a 0.001":                            time.Millisecond,
		"BRPOPLPUSH a b 2":                         2 * time.Second,
		"BLMOVE a b LEFT RIGHT 3":                  3 * time.Second,
		"BLMPOP 4 1 a LEFT COUNT 9":                4 * time.Second,
		"BZMPOP 0 1 a MIN":                         forever,
		"BZPOPMIN a 5":                             5 * time.Second,
		"BZPOPMAX a 6":                             6 * time.Second,
		"WAIT 1 700":                               700 * time.Millisecond,
		"WAIT 1 0":                                 forever,
		"WAITAOF 0 1 50":                           50 * time.Millisecond,
		"XREAD COUNT 1 BLOCK 80 STREAMS s $":       80 * time.Millisecond,
		"XREAD block 0 STREAMS s $":                forever,
		"XREADGROUP GROUP BLOCK 9 BLOCK 5 STREAMS": 5 * time.Millisecond,
		"XREAD STREAMS BLOCK 0":                    0,
		"XREAD BLOCK":                              0,
		"BLPOP a soon":                             0,
		"BLPOP a -1":                               0,
		"BLPOP a NaN":                              0,
		"BLPOP a 1e300":                            forever,
		"BLPOP":                                    0,
		"BLMPOP":                                   0,
		"GET 7":                                    0,
	} {
		require.Equal(t, want, ownCmd{split(line)}.Spec().Block, line)
	}
	require.Equal(t, 2*time.Second, ownCmd{Build("BLPOP").Arg("k").ArgInt(2)}.Spec().Block)
	require.Equal(t, 2*time.Second, ownCmd{Build("BLPOP").Arg("k").ArgUint(2)}.Spec().Block)
	require.Equal(t, 500*time.Millisecond, ownCmd{Build("BLPOP").Arg("k").ArgFloat(0.5)}.Spec().Block)
	s := ownCmd{split("BLPOP a 1").WithTimeout(time.Second).WithBudget(7)}.Spec()
	require.Equal(t, fdengine.Spec{Block: time.Second, Budget: 7}, s, "the timeout is the caller's to keep")
	require.Equal(t, carry.Replay, ownCmd{split("XREAD BLOCK 5 STREAMS s 0")}.Spec().Class)
}

// Covers: E-31
func TestOnlyWhatFitsALentConnectionMayRunThere(t *testing.T) {
	for line, want := range map[string]string{ // 1: on a one-shot, 2: on a borrowed one
		"GET k": "12", "BLPOP k 0": "12", "XREAD BLOCK 0 STREAMS s $": "12", "WAIT 0 0": "12",
		"WATCH k": "2", "UNWATCH": "2", "SELECT 1": "2", "CLIENT TRACKING ON": "2", "AUTH p": "2", "CLIENT SETNAME n": "2", "READONLY": "2",
		"SUBSCRIBE c": "", "MULTI": "", "EXEC": "", "DISCARD": "", "QUIT": "", "SHUTDOWN": "", "MONITOR": "", "CLIENT REPLY OFF": "", "SYNC": "",
		"HELLO 3": "", "RESET": "", "ASKING": "", "SCRIPT DEBUG YES": "", "FAILOVER": "",
	} {
		got := ""
		if split(line).checkOwn(false) == nil {
			got += "1"
		}
		if split(strings.ToLower(line)).checkOwn(true) == nil {
			got += "2"
		}
		require.Equal(t, want, got, line)
	}
	require.Error(t, NewCmd("BLPOP", nil).checkOwn(true))
	require.Error(t, new(Cmd).checkOwn(true))
}
