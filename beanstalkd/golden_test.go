package beanstalkd

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

var update = flag.Bool("update", false, "record testdata/replies.golden from the real server")

const goldenFile = "testdata/replies.golden"

// session is a conversation with a fresh server that shows most of the replies it has. n is how many replies a
// request gets, 1 unless said.
var session = []struct {
	request string
	n       int
}{
	{request: "list-tube-used"}, {request: "use a-b+/;.$_()9"}, {request: "watch a-b+/;.$_()9"}, {request: "ignore default"},
	{request: "ignore a-b+/;.$_()9"}, {request: "reserve-with-timeout 0"}, {request: "put 9 0 100 5\r\nhello"}, {request: "put 9 3600 100 0\r\n"},
	{request: "peek-ready"}, {request: "peek-delayed"}, {request: "peek-buried"}, {request: "peek 1"}, {request: "peek 77"}, {request: "stats-job 1"},
	{request: "reserve"}, {request: "touch 1"}, {request: "touch 2"}, {request: "release 1 5 0"}, {request: "release 1 5 0"}, {request: "reserve-job 2"},
	{request: "bury 2 1"}, {request: "bury 2 1"}, {request: "kick 5"}, {request: "kick-job 2"}, {request: "delete 1"}, {request: "delete 1"}, {request: "delete 2"},
	{request: "put 0 3600 100 0\r\n"}, {request: "kick-job 3"}, {request: "delete 3"},
	{request: "put 0 0 1 1\r\nx"}, {request: "reserve-job 4"}, {request: "reserve-with-timeout 0"}, {request: "pause-tube a-b+/;.$_()9 1"},
	{request: "pause-tube nobody 1"}, {request: "stats-tube a-b+/;.$_()9"}, {request: "stats-tube nobody"}, {request: "list-tubes"},
	{request: "list-tubes-watched"}, {request: "use a b"}, {request: "use -a"}, {request: "nothing"},
	{request: "put 0 0 1 70000\r\n" + strings.Repeat("x", 70000)},
	{request: "put 0 0 1 1\r\nabc", n: 2}, {request: "put 4294967296 0 1 1\r\na", n: 2},
	{request: "list-tube-used"},
}

// record holds the conversation with a real server: one line per request with its replies.
func record(t *testing.T) string {
	w := newWitness(t, testserver.StartBeanstalkd(t).Addr())
	var b strings.Builder
	for _, s := range session {
		w.say("%s", s.request)
		fmt.Fprintf(&b, "%s", strconv.Quote(s.request[:min(len(s.request), 40)]))
		for range max(s.n, 1) {
			fmt.Fprintf(&b, " %s", strconv.Quote(w.hear()))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// seconds in statistics depend on when they are asked for.
var passing = regexp.MustCompile(`(age|time-left|pause-time-left): \d+`)

// What the tests are made of is what a real server says, and still is.
// Covers: S2-17
func TestRecordedRepliesAreStillWhatTheServerSays(t *testing.T) {
	now := record(t)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(goldenFile, []byte(now), 0o644))
	}
	then, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	require.Equal(t, passing.ReplaceAllString(string(then), "$1: ?"), passing.ReplaceAllString(now, "$1: ?"))
}

// Covers: S2-17
func TestRecordedRepliesAreUnderstood(t *testing.T) {
	golden, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	words := map[beanstalk.Word]bool{}
	for line := range strings.Lines(string(golden)) {
		request, rest := unquote(t, line)
		for strings.HasPrefix(rest, " ") {
			var reply string
			reply, rest = unquote(t, rest[1:])
			n, _, kind, err := NewProtocol().Next([]byte(reply))
			require.NoError(t, err, "%s: %q", request, reply)
			require.Equal(t, len(reply), n)
			r, _, err := beanstalk.Parse([]byte(reply))
			require.NoError(t, err)
			words[r.Word] = true
			require.Equal(t, kind == fdengine.KindRefusal, r.Word.Refusal())
			if r.Word == beanstalk.OK {
				_, dict := beanstalk.ParseDict(r.Body)
				_, list := beanstalk.ParseList(r.Body)
				require.True(t, (dict == nil) != (list == nil), reply)
			}
			verbName, _, _ := strings.Cut(request, " ")
			for id := noVerb + 1; id < verbs; id++ {
				if table[id].name == verbName {
					require.True(t, table[id].can.has(r.Word) || inTrouble.has(r.Word), "%s: %s", request, reply)
				}
			}
		}
	}
	for w := beanstalk.Word(1); w.String() != ""; w++ {
		switch w {
		case beanstalk.Draining, beanstalk.OutOfMemory, beanstalk.InternalError: // not to be had by asking
		default:
			require.True(t, words[w], "%v was not recorded", w)
		}
	}
}

// unquote takes a quoted string off the start of s.
func unquote(t *testing.T, s string) (text, rest string) {
	q, err := strconv.QuotedPrefix(s)
	require.NoError(t, err)
	text, err = strconv.Unquote(q)
	require.NoError(t, err)
	return text, s[len(q):]
}
