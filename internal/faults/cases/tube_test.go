package cases_test

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// sizes of bodies around the edges of buffers; the full run has them all.
func sizes() (out []int) {
	step := tally.Count(97, 1)
	for n := 0; n <= 2100; n += step {
		out = append(out, n)
	}
	for _, edge := range []int{4096, 8192, 16384, 65536} {
		for d := -40; d <= 40; d += tally.Count(13, 1) {
			out = append(out, edge+d)
		}
		out = append(out, edge-2, edge-1, edge)
	}
	return out
}

// bodyOf is n bytes that look like a reply from the inside.
func bodyOf(n int) []byte {
	const bait = "\r\nRESERVED 1 1\r\nx\r\nINSERTED 7\r\nUNKNOWN_COMMAND\r\n"
	return bytes.Repeat([]byte(bait), n/len(bait)+1)[:n]
}

// segmented writes in pieces of n bytes; 0 = whole.
func segmented(c net.Conn, raw string, n int) {
	for len(raw) > 0 {
		k := len(raw)
		if n > 0 {
			k = min(k, n)
		}
		if _, err := c.Write([]byte(raw[:k])); err != nil {
			return
		}
		raw = raw[k:]
	}
}

// C46 a: a body whose line end fell on the edge of a read was cut, or left bytes for the next reply.
// https://github.com/amphp/beanstalk/issues/26 https://github.com/deepfryed/beanstalk-client/pull/9
func TestAJobOfAnySizeInAnyPiecesIsExactAndSoIsTheNextReply(t *testing.T) {
	for _, piece := range []int{1, 511, 0} {
		t.Run(fmt.Sprintf("scripted, pieces of %d", piece), func(t *testing.T) {
			answer := func(c *tubeConn, line string) {
				size, err := strconv.Atoi(strings.TrimPrefix(line, "peek "))
				if err != nil {
					c.say(dict("line", "ok"))
					return
				}
				segmented(c.Conn, fmt.Sprintf("FOUND %d %d\r\n%s\r\n", size, size, bodyOf(size)), piece)
			}
			tubeBubble(t, answer, func(t *testing.T, s *tubeServer) {
				b := s.client(t, nil)
				defer s.done(t, b)
				for _, size := range sizes() {
					if piece == 1 && size > 8300 && !tally.Full() {
						continue
					}
					got, err := b.Peek(bg, uint64(size))
					require.NoError(t, err, "size %d", size)
					require.Equal(t, size, len(got.Body))
					require.True(t, bytes.Equal(bodyOf(size), got.Body), "size %d", size)
					_, err = b.Stats(bg)
					require.NoError(t, err, "behind size %d", size)
				}
				require.Equal(t, 1, s.conns())
			})
		})
	}
	t.Run("real server", func(t *testing.T) {
		s := testserver.StartBeanstalkd(t, "-z", "70000")
		o := beanstalkd.Options{Addr: s.Addr(), MaxJobSize: 70000}
		b, c := tubeClient(t, o), consumer(t, o)
		for _, size := range sizes() {
			id, err := b.Put(bg, &beanstalkd.Put{Body: bodyOf(size)})
			require.NoError(t, err, "size %d", size)
			got, err := b.Peek(bg, id)
			require.NoError(t, err)
			require.True(t, bytes.Equal(bodyOf(size), got.Body), "size %d", size)
			job, err := c.ReserveWithTimeout(bg, 5*time.Second)
			require.NoError(t, err)
			require.Equal(t, id, job.ID)
			require.True(t, bytes.Equal(bodyOf(size), job.Body), "size %d", size)
			require.NoError(t, job.Delete(bg))
		}
		require.EqualValues(t, 1, b.Usage().Pool.Dials)
		require.EqualValues(t, 1, c.Usage().Pool.Dials)
		tally.Scenario(1)
	})
}

// C46 b: JOB_TOO_BIG and the like were taken for a broken connection, or for something to try again.
// https://github.com/prep/beanstalk/pull/17
func TestARefusedJobIsAnAnswerOnTheSameConnection(t *testing.T) {
	t.Run("real server, JOB_TOO_BIG", func(t *testing.T) {
		s := testserver.StartBeanstalkd(t, "-z", "1000")
		b := tubeClient(t, beanstalkd.Options{Addr: s.Addr(), MaxJobSize: -1})
		for range tally.Count(5, 50) {
			p := &beanstalkd.Put{Body: bodyOf(1001), Replay: true}
			_, err := b.Put(bg, p)
			fails(t, err, carry.Answered, beanstalkd.ErrJobTooBig)
			require.Equal(t, 1, p.Sends)
			id, err := b.Put(bg, &beanstalkd.Put{Body: bodyOf(1000)})
			require.NoError(t, err)
			got, err := b.Peek(bg, id)
			require.NoError(t, err)
			require.Equal(t, bodyOf(1000), got.Body)
		}
		require.EqualValues(t, 1, b.Usage().Pool.Dials)
		tally.Scenario(1)
	})
	for word, want := range map[string]error{
		"JOB_TOO_BIG": beanstalkd.ErrJobTooBig, "DRAINING": beanstalkd.ErrDraining, "OUT_OF_MEMORY": beanstalkd.ErrOutOfMemory,
	} {
		t.Run(word, func(t *testing.T) {
			answer := func(c *tubeConn, line string) {
				if strings.HasPrefix(c.body, "bad") && strings.HasPrefix(line, "put") {
					c.say(word + "\r\n")
				} else if strings.HasPrefix(line, "put") {
					c.say("INSERTED 9\r\n")
				} else {
					c.say(dict("x", 1))
				}
			}
			tubeBubble(t, answer, func(t *testing.T, s *tubeServer) {
				b := s.client(t, func(o *beanstalkd.Options) { o.Engine.MaxRefusals = 4 })
				defer s.done(t, b)
				_, err := b.Put(bg, &beanstalkd.Put{Body: []byte("bad")})
				fails(t, err, carry.Answered, want)
				sends := 1
				if word == "OUT_OF_MEMORY" { // it may pass: tried again, as often as MaxRefusals says
					sends += 4
				}
				require.Len(t, s.lines("put"), sends)
				id, err := b.Put(bg, &beanstalkd.Put{Body: []byte("good")})
				require.NoError(t, err)
				require.EqualValues(t, 9, id)
				_, err = b.Stats(bg)
				require.NoError(t, err)
				require.Equal(t, 1, s.conns())
			})
		})
	}
}

// C46 c: a name with a space or a line end in it is a second request to the server.
// https://github.com/beanstalkd/beanstalkd/issues/141
func TestABadTubeNameIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	names := []string{"a b", "a\r\nput 0 0 60 1", "a\n", "a\x00b", "-a", "ä", strings.Repeat("n", 201)}
	good := []string{strings.Repeat("n", 200), "a-b+c/d;e.f$g_h(i)"}
	answer := func(c *tubeConn, line string) {
		if strings.HasPrefix(line, "put") {
			c.say("INSERTED 1\r\n")
			return
		}
		c.say(dict("x", 1))
	}
	tubeBubble(t, answer, func(t *testing.T, s *tubeServer) {
		b := s.client(t, func(o *beanstalkd.Options) { o.ManyTubes = true })
		defer s.done(t, b)
		o := s.options()
		c, err := beanstalkd.NewConsumer(o)
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()); <-c.Done() }()
		for _, name := range names {
			bad := s.options()
			bad.Tube = name
			require.Error(t, bad.Validate(), "%q", name)
			_, err := b.PutIn(bg, name, &beanstalkd.Put{Body: []byte("x")})
			fails(t, err, carry.NotSent)
			_, err = b.StatsTube(bg, name)
			fails(t, err, carry.NotSent)
			fails(t, b.PauseTube(bg, name, time.Second), carry.NotSent)
			_, err = c.Watch(bg, name)
			fails(t, err, carry.NotSent)
			_, err = c.Ignore(bg, name)
			fails(t, err, carry.NotSent)
			for _, cmd := range []*beanstalkd.Cmd{
				beanstalkd.StatsTube(name), beanstalkd.PauseTube(name, time.Second), beanstalkd.Watch(name), beanstalkd.Ignore(name),
				beanstalkd.PeekReady(name), beanstalkd.PeekDelayed(name), beanstalkd.PeekBuried(name), beanstalkd.Kick(name, 1),
			} {
				fails(t, b.Do(bg, cmd), carry.NotSent)
			}
			_, err = beanstalkd.NewConsumer(o, name)
			require.Error(t, err)
		}
		require.Zero(t, s.conns(), "not so much as a dial")
		for _, name := range good {
			_, err := b.PutIn(bg, name, &beanstalkd.Put{Body: []byte("x")})
			require.NoError(t, err, name)
			_, err = b.StatsTube(bg, name)
			require.NoError(t, err, name)
		}
	})
}

// C46 d: older servers answer a command line that is too long twice, which shifted all later replies.
// https://github.com/beanstalkd/beanstalkd/issues/141 https://github.com/beanstalkd/beanstalkd/pull/562
func TestTheSecondAnswerToOneCommandReachesNobody(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("apart %v", apart), func(t *testing.T) {
			answer := func(c *tubeConn, line string) {
				switch {
				case c.index == 0 && strings.HasPrefix(line, "put") && c.body == "odd":
					if apart {
						c.say("BAD_FORMAT\r\n")
						<-time.After(10 * time.Millisecond)
						c.say("UNKNOWN_COMMAND\r\n")
					} else {
						c.say("BAD_FORMAT\r\nUNKNOWN_COMMAND\r\n")
					}
				case strings.HasPrefix(line, "put"):
					c.say("INSERTED 5\r\n")
				default:
					c.say(dict("x", 1))
				}
			}
			tubeBubble(t, answer, func(t *testing.T, s *tubeServer) {
				b := s.client(t, func(o *beanstalkd.Options) { o.Engine = fdengine.Options{Budget: 3} })
				defer s.done(t, b)
				_, err := b.Put(bg, &beanstalkd.Put{Body: []byte("odd")})
				fails(t, err, carry.Answered)
				var se *beanstalkd.ServerError
				require.ErrorAs(t, err, &se)
				require.Equal(t, "BAD_FORMAT", se.Code)
				id, err := b.Put(bg, &beanstalkd.Put{Body: []byte("next")})
				require.NoError(t, err)
				require.EqualValues(t, 5, id)
				_, err = b.Stats(bg)
				require.NoError(t, err)
				require.Equal(t, 2, s.conns(), "cut at the first of the two")
			})
			tally.Cut(1)
		})
	}
}
