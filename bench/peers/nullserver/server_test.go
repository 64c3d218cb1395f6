package nullserver

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

const request = "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n"

func TestEachRequestIsCountedAndAnsweredHoweverItIsCut(t *testing.T) {
	for _, step := range []int{1, 7, 33, 1000} {
		s := start(t)
		c := dial(t, s)
		stream := strings.Repeat(request, 5) + "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" + strings.Repeat(request, 4)
		for at := 0; at < len(stream); at += step {
			_, err := io.WriteString(c, stream[at:min(at+step, len(stream))])
			require.NoError(t, err)
		}
		got := make([]byte, 10*len(okReply))
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(okReply, 10), string(got))
		n, err := Counted(s.Addr())
		require.NoError(t, err)
		require.EqualValues(t, 10, n.Frames, "step %d", step)
		require.LessOrEqual(t, n.Reads, n.Frames)
	}
}

func TestSetUpCommandsAreAnsweredInTheirPlaceAndNotCounted(t *testing.T) {
	s := start(t)
	c := dial(t, s)
	_, err := io.WriteString(c, request+"*1\r\n$4\r\nPING\r\n"+request+"*2\r\n$6\r\nclient\r\n$2\r\nid\r\n"+request)
	require.NoError(t, err)
	r := bufio.NewReader(c)
	for _, want := range []string{"+OK", "+PONG", "+OK", ":1", "+OK"} {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want+"\r\n", line)
	}
	n, err := Counted(s.Addr())
	require.NoError(t, err)
	require.EqualValues(t, 3, n.Frames)
}

func TestAHoldSwallowsAndCutsAndTheNextConnectionIsServed(t *testing.T) {
	s := start(t)
	require.NoError(t, Hold(s.Addr(), 3))
	c := dial(t, s)
	_, err := io.WriteString(c, strings.Repeat(request, 3))
	require.NoError(t, err)
	n, err := c.Read(make([]byte, 100))
	require.Error(t, err)
	require.Zero(t, n, "nothing is answered")

	c = dial(t, s)
	_, err = io.WriteString(c, request)
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, okReply, line)
	counted, err := Counted(s.Addr())
	require.NoError(t, err)
	require.EqualValues(t, 4, counted.Frames)
}

func TestWhatIsNoRequestEndsTheConnection(t *testing.T) {
	for _, bad := range []string{"PING\r\n", "*0\r\n", "*1\r\n+PING\r\n", "*1\r\n$x\r\n"} {
		c := dial(t, start(t))
		_, err := io.WriteString(c, bad)
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "%q", bad)
	}
}

func TestTheRememberedShapeCountsAsTheLongWayDoes(t *testing.T) {
	var quick parser
	other := strings.Replace(request, "SET", "LAP", 1)
	longer := "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$6\r\nvalue2\r\n"
	stream := request + request + other + longer + longer + request
	sizes := []int{len(request), len(request), len(other), len(longer), len(longer), len(request)}
	for at, i := 0, 0; at < len(stream); i++ {
		var slow parser
		want, _ := slow.next([]byte(stream[at:]))
		got, words := quick.next([]byte(stream[at:]))
		require.Equal(t, sizes[i], want)
		require.Equal(t, want, got)
		require.Nil(t, words)
		at += got
	}
	require.NotZero(t, quick.size)
}

func TestAGetIsAnsweredWithTheValueThatWasSetAndCounted(t *testing.T) {
	s := start(t)
	c := dial(t, s)
	r := bufio.NewReader(c)
	ask := func(n int) string {
		_, err := io.WriteString(c, request+"*2\r\n$3\r\nget\r\n$1\r\nk\r\n"+request)
		require.NoError(t, err)
		got := make([]byte, n)
		_, err = io.ReadFull(r, got)
		require.NoError(t, err)
		return string(got)
	}
	require.Equal(t, "+OK\r\n+OK\r\n+OK\r\n", ask(15), "there is none yet")
	require.NoError(t, SetValue(s.Addr(), 3))
	require.Equal(t, "+OK\r\n$3\r\nvvv\r\n+OK\r\n", ask(19))
	require.NoError(t, SetValue(s.Addr(), 0))
	require.Equal(t, "+OK\r\n+OK\r\n+OK\r\n", ask(15))
	require.Error(t, SetValue(s.Addr(), -1))
	n, err := Counted(s.Addr())
	require.NoError(t, err)
	require.EqualValues(t, 9, n.Frames)
}

func TestARequestLargerThanTheBufferIsCounted(t *testing.T) {
	s := start(t)
	c := dial(t, s)
	large := "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1048576\r\n" + strings.Repeat("v", 1<<20) + "\r\n"
	_, err := io.WriteString(c, large+request+large)
	require.NoError(t, err)
	got := make([]byte, 3*len(okReply))
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat(okReply, 3), string(got))
}

func TestASlowServerReadsNoFasterThanItsPace(t *testing.T) {
	const pace, sent = 1 << 20, 100 << 10
	s, err := ListenSlow("127.0.0.1:0", pace)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	c := dial(t, s)
	n := sent / len(request)
	from := time.Now()
	_, err = io.WriteString(c, strings.Repeat(request, n))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, n*len(okReply)))
	require.NoError(t, err)
	least := time.Duration(float64(n*len(request)) / pace * float64(time.Second))
	require.GreaterOrEqual(t, time.Since(from), least-leastPause)
}
