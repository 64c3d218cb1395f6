package redis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
)

// Covers: E-23, S0-12, S0-15
func TestEachErrorReplyHasTheVerdictOfTheTable(t *testing.T) {
	var (
		deliver = fdengine.Verdict{}
		retry   = fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}
		newConn = fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo, Conn: fdengine.Retire}
		unsure  = fdengine.Verdict{Then: fdengine.RetryHere, Conn: fdengine.Retire}
		retired = fdengine.Verdict{Ran: fdengine.RanNo, Conn: fdengine.Retire}
		cut     = fdengine.Verdict{Conn: fdengine.Cut}
	)
	moved := func(addr string) fdengine.Verdict {
		return fdengine.Verdict{Then: fdengine.Reroute, Ran: fdengine.RanNo, Hint: fdengine.Hint{Addr: addr}}
	}
	ask := moved("10.0.0.2:7001")
	ask.Hint.Prefix, ask.Hint.Frames = []byte("*1\r\n$6\r\nASKING\r\n"), 1
	for reply, want := range map[string]fdengine.Verdict{
		"-READONLY You can't write against a read only replica.":       newConn,
		"-ERR READONLY You can't write against a read only replica.":   newConn,
		"-LOADING Redis is loading the dataset in memory":              retry,
		"-MASTERDOWN Link with MASTER is down and replica-serve-st...": retry,
		"-CLUSTERDOWN Hash slot not served":                            retry,
		"-CLUSTERDOWN The cluster is down":                             retry,
		"-CLUSTERDOWN The cluster is down and only accepts read":       retry,
		"-MOVED 3999 127.0.0.1:6381":                                   moved("127.0.0.1:6381"),
		"-MOVED 3999 :6381":                                            moved("db.test:6381"),
		"-MOVED 3999 ::1:6381":                                         moved("[::1]:6381"),
		"-MOVED 3999 [fe80::1]:6381":                                   moved("[fe80::1]:6381"),
		"-MOVED 3999 ?:6381":                                           moved(""),
		"-MOVED 3999 host:0":                                           moved(""),
		"-MOVED 3999 host:65536":                                       moved(""),
		"-MOVED":                                                       moved(""),
		"-ASK 3999 10.0.0.2:7001":                                      ask,
		"-REDIRECT 10.0.0.9:6379":                                      moved("10.0.0.9:6379"),
		"-TRYAGAIN Multiple keys request during rehashing of slot":     retry,
		"-CROSSSLOT Keys in request don't hash to the same slot":       deliver,
		"-NOREPLICAS Not enough good replicas to write.":               retry,
		"-BUSY Redis is busy running a script. You can only call":      retry,
		"-BUSYGROUP Consumer Group name already exists":                deliver,
		"-BUSYKEY Target key name already exists.":                     deliver,
		"-ERR Script killed by user with SCRIPT KILL.":                 deliver,
		"-OOM command not allowed when used memory > 'maxmemory'.":     deliver,
		"-MISCONF Redis is configured to save RDB snapshots":           deliver,
		"-EXECABORT Transaction discarded because of previous errors.": deliver,
		"-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": newConn,
		"-UNBLOCKED client unblocked via CLIENT UNBLOCK":                                                {Ran: fdengine.RanNo},
		"-ERR max number of clients reached":                                                            cut,
		"-ERR Protocol error: invalid bulk length":                                                      cut,
		"-NOAUTH Authentication required.":                                                              retired,
		"-WRONGPASS invalid username-password pair or user is disabled.":                                deliver,
		"-NOPERM this user has no permissions to run the 'get' command":                                 deliver,
		"-NOSCRIPT No matching script. Please use EVAL.":                                                deliver,
		"-WRONGTYPE Operation against a key holding the wrong kind of value":                            deliver,
		"-ERR unknown command 'FOO', with args beginning with: 'LOADING' ":                              deliver,
		"-IDONTKNOW I have not enough information to reply":                                             deliver,
		"-INPROG Failover already in progress":                                                          deliver,
		"-NOGOODSLAVE No suitable replica to promote":                                                   deliver,
		"-nothing in capitals":                                                                          deliver,
		"-LOADINGS of something else":                                                                   deliver,
		// Inside a script: what it did before may have taken effect.
		"-READONLY You can't write against a read only replica. script: a9c3, on @user_script:1.":                   unsure,
		"-ERR Error running script (call to f_x): @user_script:1: @user_script: 1: -READONLY You can't write again": unsure,
		"-ERR Error running script (call to f_x): @user_script:1: WRONGTYPE Operation against a key":                deliver,
		"-NOREPLICAS Not enough good replicas to write. script: a9c3, on @user_script:1.":                           {Then: fdengine.RetryHere},
		// The same words in other frames.
		"!19\r\nLOADING with\r\nlines":              retry,
		"|1\r\n+k\r\n+v\r\n-TRYAGAIN later":         retry,
		"|1\r\n+k\r\n+v\r\n+LOADING is no error":    deliver,
		"+LOADING is no error":                      deliver,
		"*2\r\n-LOADING inside\r\n-READONLY inside": deliver,
	} {
		p := NewProtocol("db.test:6379")
		frame := []byte(reply + "\r\n")
		n, _, _, _ := NewProtocol("").Next(append([]byte("+first\r\n"), frame...))
		require.Equal(t, 8, n)
		for _, maybe := range []bool{false, true} {
			require.Equal(t, want, p.Verdict(frame, maybe), "%q", reply)
		}
	}
	require.Equal(t, moved(":6381"), NewProtocol("/tmp/socket").Verdict([]byte("-MOVED 1 :6381\r\n"), false), "host unknown")
}

func TestVerdictsDoNotShareTheirPrefix(t *testing.T) {
	p := NewProtocol("h:1")
	a := p.Verdict([]byte("-ASK 1 h:2\r\n"), false)
	b := p.Verdict([]byte("-ASK 1 h:2\r\n"), false)
	a.Hint.Prefix[0] = 'x'
	require.Equal(t, byte('*'), b.Hint.Prefix[0])
}

// Covers: E-30
func TestFramesAreTheKindThatTheirTypeSays(t *testing.T) {
	p := NewProtocol("h:1")
	buf := []byte("+OK\r\n-ERR x\r\n>2\r\n+a\r\n+b\r\n|1\r\n+a\r\n+b\r\n-LOADING\r\n*1\r\n-ERR in\r\n!3\r\nERR\r\n")
	var kinds []fdengine.Kind
	for len(buf) > 0 {
		n, _, kind, err := p.Next(buf)
		require.NoError(t, err)
		kinds = append(kinds, kind)
		buf = buf[n:]
	}
	require.Equal(t, []fdengine.Kind{
		fdengine.KindReply, fdengine.KindRefusal, fdengine.KindPush, fdengine.KindRefusal, fdengine.KindReply, fdengine.KindRefusal,
	}, kinds)
}

// Covers: E-37
func TestAFullServersFirstWordsAreTheEndOfTheStreamAndLaterOnesAReply(t *testing.T) {
	line := []byte("-ERR max number of clients reached\r\n")
	_, _, _, err := NewProtocol("h:1").Next(line)
	require.ErrorIs(t, err, errMaxClients)
	p := NewProtocol("h:1")
	_, _, _, err = p.Next([]byte("+OK\r\n"))
	require.NoError(t, err)
	n, _, kind, err := p.Next(line)
	require.NoError(t, err)
	require.Equal(t, len(line), n)
	require.Equal(t, fdengine.KindRefusal, kind)
}

func TestAStreamThatIsNotTheProtocolIsLost(t *testing.T) {
	p := NewProtocol("h:1")
	_, need, _, err := p.Next([]byte("$10\r\nabc"))
	require.NoError(t, err)
	require.Equal(t, 17, need)
	_, _, _, err = NewProtocol("h:1").Next([]byte("HTTP/1.1 400 Bad Request\r\n"))
	require.Error(t, err)
}
