package scripted_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

var frames = []struct {
	raw  string
	kind fdengine.Kind
}{
	{"+OK\r\n", fdengine.KindReply},
	{"-ERR no\r\n", fdengine.KindRefusal},
	{":12\r\n", fdengine.KindReply},
	{"$5\r\na\r\nbc\r\n", fdengine.KindReply},
	{"$0\r\n\r\n", fdengine.KindReply},
	{"$-1\r\n", fdengine.KindReply},
	{"*-1\r\n", fdengine.KindReply},
	{"*0\r\n", fdengine.KindReply},
	{"*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n", fdengine.KindReply},
	{"_\r\n", fdengine.KindReply},
	{",1.5\r\n", fdengine.KindReply},
	{"#t\r\n", fdengine.KindReply},
	{"(123456789012345678901\r\n", fdengine.KindReply},
	{"%1\r\n+k\r\n%1\r\n+a\r\n:1\r\n", fdengine.KindReply},
	{"~1\r\n-inner\r\n", fdengine.KindReply},
	{"=8\r\ntxt:abcd\r\n", fdengine.KindReply},
	{"!5\r\nERR x\r\n", fdengine.KindRefusal},
	{">2\r\n+msg\r\n$1\r\nx\r\n", fdengine.KindPush},
	{"|1\r\n+ttl\r\n:5\r\n-late\r\n", fdengine.KindRefusal},
	{"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n|0\r\n:2\r\n", fdengine.KindReply},
}

func TestEveryFrameIsFoundWholeAndByteByByte(t *testing.T) {
	var glued string
	for _, f := range frames {
		glued += f.raw
	}
	for _, step := range []int{1, 2, 3, 7, len(glued)} {
		p := scripted.NewProtocol()
		var buf []byte
		seen := 0
		for at := 0; at < len(glued); at += step {
			buf = append(buf, glued[at:min(at+step, len(glued))]...)
			for len(buf) > 0 {
				n, need, kind, err := p.Next(buf)
				require.NoError(t, err)
				if n == 0 {
					require.Greater(t, need, len(buf))
					require.LessOrEqual(t, need, len(frames[seen].raw), "a lower bound of %q", frames[seen].raw)
					break
				}
				require.Equal(t, frames[seen].raw, string(buf[:n]))
				require.Equal(t, frames[seen].kind, kind)
				buf = append([]byte(nil), buf[n:]...) // it may move
				seen++
			}
		}
		require.Equal(t, len(frames), seen)
	}
}

func TestALargeReplyAnnouncesItsSizeAndIsScannedOnce(t *testing.T) {
	payload := strings.Repeat("x\n", 1<<19)
	raw := []byte("*3\r\n+a\r\n$1048576\r\n" + payload + "\r\n:1\r\n")
	p := &scripted.Protocol{}
	var err error
	var n, need int
	for end := 16; n == 0; end += 1000 {
		n, need, _, err = p.Next(raw[:min(end, len(raw))])
		require.NoError(t, err)
		if end > 100 && end < 1<<20 {
			require.Equal(t, len(raw)-4, need)
		}
	}
	require.Equal(t, len(raw), n)
	require.Less(t, p.Scanned, 10_000)
}

func TestBytesThatAreNoFrameAreAnError(t *testing.T) {
	for _, raw := range []string{
		"hello\r\n", "\r\n", "$x\r\n", "$-2\r\n", "%-1\r\n", "$+1\r\n", "$\r\n", "*9999999999999\r\n", "+no cr\n",
		strings.Repeat("*1\r\n", 200), "+" + strings.Repeat("x", 70<<10),
	} {
		_, _, _, err := scripted.NewProtocol().Next([]byte(raw))
		require.Error(t, err, "%.20q", raw)
	}
}

func TestTheFirstWordOfAnErrorDecidesTheVerdict(t *testing.T) {
	again := fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}
	retire := again
	retire.Conn = fdengine.Retire
	later := again
	later.After = 40 * time.Millisecond
	moved := fdengine.Verdict{Then: fdengine.Reroute, Ran: fdengine.RanNo, Hint: fdengine.Hint{Addr: "h:1"}}
	ask := moved
	ask.Hint.Prefix, ask.Hint.Frames = []byte("*1\r\n$6\r\nASKING\r\n"), 1
	term := moved
	term.Hint.Term = 7
	nowhere := fdengine.Verdict{Then: fdengine.Reroute, Ran: fdengine.RanNo, Hint: fdengine.Hint{Term: 7}}
	for line, want := range map[string]fdengine.Verdict{
		"LOADING soon":           again,
		"TRYAGAIN x":             again,
		"BUSY retry=40":          later,
		"CLUSTERDOWN x":          again,
		"MASTERDOWN x":           again,
		"NOREPLICAS":             again,
		"READONLY you can't":     retire,
		"MOVED 3999 h:1":         moved,
		"ASK 3999 h:1":           ask,
		"REDIRECT h:1":           moved,
		"REDIRECT term=7 h:1":    term,
		"REDIRECT term=7":        nowhere,
		"ERR Protocol error: x":  {Conn: fdengine.Cut},
		"ERR no":                 {},
		"WRONGTYPE x":            {},
		"LOADINGX is no LOADING": {},
	} {
		p := scripted.NewProtocol()
		require.Equal(t, want, p.Verdict([]byte("-"+line+"\r\n"), false), line)
	}
	require.Equal(t, again, scripted.NewProtocol().Verdict([]byte("!7\r\nLOADING\r\n"), true))
	require.Equal(t, fdengine.Verdict{}, scripted.NewProtocol().Verdict([]byte("-\r\n"), true))
}
