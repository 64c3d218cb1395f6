package contend_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// A pool of radix that is closed while it dials leaves the goroutines of that connection behind. Its leak is not ours to find.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mediocregopher/radix/v4.(*conn).reader"),
		goleak.IgnoreAnyFunction("github.com/mediocregopher/radix/v4.(*conn).writer"))
}

const patience = 30 * time.Second

func open(t *testing.T, c contend.Contender, addr string) contend.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := c.Open(ctx, contend.Target{Addr: addr})
	require.NoError(t, err)
	return client
}

// resp are the contenders that speak to the counting server.
func resp(t *testing.T, f func(t *testing.T, c contend.Contender)) {
	for _, c := range contend.All() {
		if c.Server == "resp" {
			t.Run(c.Name, func(t *testing.T) { f(t, c) })
		}
	}
}

// times is a question that is answered yes n times.
func times(n int) func() bool {
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	return func() bool {
		select {
		case <-left:
			return true
		default:
			return false
		}
	}
}

func TestEveryFaceOfEveryContenderSendsWhatItSaysItDoes(t *testing.T) {
	resp(t, func(t *testing.T, c contend.Contender) {
		s, err := nullserver.Listen("127.0.0.1:0")
		require.NoError(t, err)
		defer s.Close()
		client := open(t, c, s.Addr())
		defer func() { require.NoError(t, client.Close()) }()
		sent := int64(0)
		counted := func(why string) {
			n, err := nullserver.Counted(s.Addr())
			require.NoError(t, err)
			require.Equal(t, sent, n.Frames, why)
		}
		one := client.Caller(0)
		for range 3 {
			require.NoError(t, one.Call())
			sent++
		}
		counted("blocking")
		if b, ok := client.(contend.Batcher); ok {
			many := b.Batch(1, 10)
			for range 2 {
				require.NoError(t, many.Call())
				sent += 10
			}
			counted("batch")
		}
		if b, ok := client.(contend.Bulk); ok {
			require.NoError(t, b.All(20).Call())
			require.NoError(t, b.All(10_000).Call())
			sent += 10_020
			counted("bulk")
		}
		if st, ok := client.(contend.Streamer); ok {
			flow, err := st.Stream(300)
			require.NoError(t, err)
			for range 2 {
				n, err := flow.Run(times(20))
				require.NoError(t, err)
				require.Positive(t, n)
				sent += n
				counted("asynchronous")
			}
		}
	})
}

func TestEveryFaceOfEveryContenderNoticesAWrongReply(t *testing.T) {
	resp(t, func(t *testing.T, c contend.Contender) {
		s, err := nullserver.ListenWrong("127.0.0.1:0")
		require.NoError(t, err)
		defer s.Close()
		client := open(t, c, s.Addr())
		defer client.Close()
		require.ErrorContains(t, client.Caller(0).Call(), "NO")
		if b, ok := client.(contend.Batcher); ok {
			require.ErrorContains(t, b.Batch(1, 10).Call(), "NO")
		}
		if st, ok := client.(contend.Streamer); ok {
			flow, err := st.Stream(300)
			require.NoError(t, err)
			_, err = flow.Run(times(20))
			require.ErrorContains(t, err, "NO")
		}
	})
}

func TestCommandsOfACutConnectionAreSentAgain(t *testing.T) {
	const n = 500
	s, err := nullserver.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	c, err := contend.Find("fullduplex raw")
	require.NoError(t, err)
	client := open(t, c, s.Addr())
	defer client.Close()
	require.NoError(t, nullserver.Hold(s.Addr(), n))
	full := false
	size, wait, err := client.(contend.Replayer).Replay(n, func() { full = true })
	require.NoError(t, err)
	require.NoError(t, wait())
	require.True(t, full)
	require.Equal(t, 107, size)
	counted, err := nullserver.Counted(s.Addr())
	require.NoError(t, err)
	require.EqualValues(t, 2*n, counted.Frames)
}

func TestEveryJobOfEveryContenderIsStored(t *testing.T) {
	for _, c := range contend.All() {
		if c.Server != "beanstalkd" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			s := testserver.StartBeanstalkd(t)
			client := open(t, c, s.Addr())
			for i := range 2 {
				caller := client.Caller(i)
				for range 3 {
					require.NoError(t, caller.Call())
				}
			}
			if b, ok := client.(contend.Bulk); ok {
				require.NoError(t, b.All(50).Call())
			}
			require.NoError(t, client.Close())
		})
	}
}

func TestLimitsWithoutServerCall(t *testing.T) {
	for _, c := range contend.All() {
		if !c.NoIO {
			continue
		}
		client := open(t, c, "")
		for range 3 {
			require.NoError(t, client.Caller(0).Call())
			require.NoError(t, client.(contend.Batcher).Batch(0, 10).Call())
		}
		flow, err := client.(contend.Streamer).Stream(1000)
		require.NoError(t, err)
		n, err := flow.Run(times(30))
		require.NoError(t, err)
		require.EqualValues(t, 30*100, n, c.Name)
		require.NoError(t, client.Close())
	}
}

func TestNamesAreUniqueAndFound(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range contend.All() {
		require.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
		found, err := contend.Find(c.Name)
		require.NoError(t, err)
		require.Equal(t, c.Setting, found.Setting)
	}
	_, err := contend.Find("nobody")
	require.Error(t, err)
}
