package beanstalkd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
)

func TestABuriedJobIsStoredWithAWarningAndNotStoredAgain(t *testing.T) {
	puts := 0
	bubble(t, func(r request) string {
		if r.body == "big" {
			puts++
			return "BURIED 5\r\n"
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		p := &Put{Body: []byte("big"), Replay: true}
		id, err := c.Put(bg, p)
		require.NoError(t, err)
		require.EqualValues(t, 5, id)
		require.True(t, p.Buried)
		require.Equal(t, 1, puts)
		p.Body = []byte("small")
		_, err = c.Put(bg, p)
		require.NoError(t, err)
		require.False(t, p.Buried, "of an earlier use")
	})
}

// A server that is draining, or has no memory for a job, has read all of it: the connection is in step (C46 b).
func TestARefusedPutLeavesTheConnectionInStepAndOnlyWantOfMemoryIsTriedAgain(t *testing.T) {
	tries := map[string]int{}
	bubble(t, func(r request) string {
		tries[r.body]++
		switch r.body {
		case "drain":
			return "DRAINING\r\n"
		case "big":
			return "JOB_TOO_BIG\r\n"
		case "twice":
			if tries[r.body] < 3 {
				return "OUT_OF_MEMORY\r\n"
			}
		case "never":
			return "OUT_OF_MEMORY\r\n"
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, func(o *Options) { o.Engine.MaxRefusals = 4 })
		defer end(t, c)
		bodies := []string{"a", "drain", "b", "big", "c", "twice", "d", "never", "e"}
		var cmds []fdengine.Command
		for _, b := range bodies {
			cmds = append(cmds, &Put{Body: []byte(b)})
		}
		errs := make([]error, len(cmds))
		require.ErrorIs(t, c.DoBatch(bg, cmds, errs), ErrDraining)
		for i, want := range []error{nil, ErrDraining, nil, ErrJobTooBig, nil, nil, nil, ErrOutOfMemory, nil} {
			if want == nil {
				require.NoError(t, errs[i], bodies[i])
				require.Equal(t, 1, s.stored(bodies[i]))
			} else {
				require.ErrorIs(t, errs[i], want)
				require.Equal(t, carry.Answered, fdengine.FateOf(errs[i]))
			}
		}
		require.Equal(t, map[string]int{"": 2, "a": 1, "drain": 1, "b": 1, "big": 1, "c": 1, "twice": 3, "d": 1, "never": 5, "e": 1}, tries)
		require.Equal(t, 1, s.conns())
		even(t, c.Usage())
	})
}

// An old server answers an over-long line twice; a broken client that goes on gives every later caller the reply of
// the one before (C46 d).
// Covers: E-37
func TestAfterADoubleReplyNobodyGetsTheSecond(t *testing.T) {
	for _, double := range []string{"BAD_FORMAT\r\nUNKNOWN_COMMAND\r\n", "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n", "EXPECTED_CRLF\r\nINSERTED 99\r\n"} {
		bubble(t, func(r request) string {
			if r.body == "bad" {
				return double
			}
			return normal
		}, func(t *testing.T, s *fake) {
			c := s.client(t, nil)
			defer end(t, c)
			puts := []*Put{{Body: []byte("a")}, {Body: []byte("bad")}, {Body: []byte("b"), Replay: true}, {Body: []byte("c")}}
			var cmds []fdengine.Command
			for _, p := range puts {
				cmds = append(cmds, p)
			}
			errs := make([]error, len(cmds))
			require.Error(t, c.DoBatch(bg, cmds, errs))
			require.NoError(t, errs[0])
			require.EqualValues(t, 1, puts[0].ID)
			var refusal *ServerError
			require.ErrorAs(t, errs[1], &refusal)
			require.Equal(t, double[:strings.Index(double, "\r")], refusal.Code)
			require.NoError(t, errs[2], "was replayed on a new connection")
			require.True(t, puts[2].Maybe)
			require.NotEqualValues(t, 99, puts[2].ID)
			require.ErrorIs(t, errs[3], fdengine.ErrMaybeExecuted)
			require.Equal(t, 2, s.conns())
			require.LessOrEqual(t, s.stored("c"), 1)
			even(t, c.Usage())
		})
	}
}

// Covers: E-37
func TestAReplyThatNobodyWaitsForEndsTheConnection(t *testing.T) {
	bubble(t, func(r request) string {
		if r.body == "x" {
			return "INSERTED 1\r\nINSERTED 2\r\n"
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		id, err := c.Put(bg, &Put{Body: []byte("x")})
		require.NoError(t, err)
		require.EqualValues(t, 1, id)
		synctest.Wait()
		require.EqualValues(t, 1, c.Usage().Engine.Cuts)
		id, err = c.Put(bg, &Put{Body: []byte("y")})
		require.NoError(t, err)
		require.EqualValues(t, 1, id, "the first that this server stored itself")
		require.Equal(t, 2, s.conns())
	})
}

func TestAFaultOfTheServerRetiresTheConnectionAndIsNotTriedAgain(t *testing.T) {
	bubble(t, func(r request) string {
		if r.body == "x" {
			return "INTERNAL_ERROR\r\n"
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		errs := make([]error, 2)
		require.Error(t, c.DoBatch(bg, []fdengine.Command{&Put{Body: []byte("x")}, &Put{Body: []byte("y")}}, errs))
		require.ErrorIs(t, errs[0], ErrInternalError)
		require.NoError(t, errs[1], "was in flight on the same connection")
		_, err := c.Put(bg, &Put{Body: []byte("z")})
		require.NoError(t, err)
		require.Equal(t, 2, s.conns())
		require.Equal(t, []string{"put 0 0 60 1"}, s.lines(1))
	})
}

func TestAPutWhoseConnectionDiedUnansweredMayHaveBeenStoredAndIsSentAgainOnlyWhenVouchedFor(t *testing.T) {
	bubble(t, func(r request) string {
		if strings.HasPrefix(r.body, "die") && r.conn == 0 {
			return doDrop
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		_, err := c.Put(bg, &Put{Body: []byte("die")})
		require.ErrorIs(t, err, fdengine.ErrMaybeExecuted)
		require.Equal(t, 1, s.stored("die"))
	})
	bubble(t, func(r request) string {
		if r.body == "die" && r.conn == 0 {
			return doDrop
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		p := &Put{Body: []byte("die"), Replay: true}
		id, err := c.Put(bg, p)
		require.NoError(t, err)
		require.EqualValues(t, 2, id)
		require.True(t, p.Maybe)
		require.Equal(t, 2, p.Sends)
		require.Equal(t, 2, s.stored("die"))
	})
}

// Covers: E-18, E-5
func TestAUseAndAPutAreOnePieceWhereverTheConnectionIsCut(t *testing.T) {
	const record = "use a\r\nput 0 0 60 4\r\nbody\r\n"
	const before = len("use default\r\nlist-tube-used\r\n")
	for cut := 0; cut <= len(record); cut++ {
		bubble(t, nil, func(t *testing.T, s *fake) {
			s.net.OnDial = func(n int, c, srv *memnet.Conn) error {
				if n == 1 {
					c.Out().CutAt(int64(before+cut), memnet.Cut{})
				}
				return nil
			}
			c := s.client(t, func(o *Options) { o.ManyTubes = true })
			defer end(t, c)
			_, err := c.PutIn(bg, "a", &Put{Body: []byte("body")})
			synctest.Wait()
			if cut < len(record) {
				require.NoError(t, err, "cut at %d: it was not all sent, so it goes again", cut)
				require.Equal(t, 1, s.stored("body"))
			} else {
				require.ErrorIs(t, err, fdengine.ErrMaybeExecuted)
				require.LessOrEqual(t, s.stored("body"), 1)
			}
			for _, j := range s.mu.jobs {
				require.Equal(t, "a", j.tube)
			}
			if cut < len(record) {
				require.Equal(t, []string{"use a", "put 0 0 60 4"}, s.lines(1), "whole, on the new connection")
			}
		})
	}
}

// The caller leaves after the write; its reply comes later and used to be taken for that of the next (C01).
// Covers: E-19
func TestACallerWhoLeavesShiftsNobodysReplies(t *testing.T) {
	var release chan struct{}
	bubble(t, func(r request) string {
		if r.body == "slow" {
			<-release
		}
		return normal
	}, func(t *testing.T, s *fake) {
		release = make(chan struct{})
		c := s.client(t, nil)
		defer end(t, c)
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		slow := &Put{Body: []byte("slow")}
		_, err := c.Put(ctx, slow)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, fdengine.ErrMaybeExecuted)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				p := &Put{Body: fmt.Appendf(nil, "b%d", i)}
				_, err := c.Put(bg, p)
				require.NoError(t, err)
				s.mu.Lock()
				defer s.mu.Unlock()
				require.Equal(t, string(p.Body), s.mu.jobs[p.ID-1].body)
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		require.Zero(t, slow.ID, "its memory is not touched any more")
		require.Equal(t, 1, s.conns())
		require.Equal(t, 1, s.stored("slow"))
	})
}

// Covers: E-22
func TestADecoderThatFailsCostsItsOwnCommandOnly(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		errs := decodeErrors(t, c)
		require.ErrorIs(t, errs[0], errPicky)
		require.Equal(t, carry.Answered, fdengine.FateOf(errs[0]))
		require.Equal(t, 1, s.conns())
	})
}

var errPicky = errors.New("not to my taste")

// picky is a command whose decoder fails.
type picky struct{ Put }

func (*picky) DecodeReply(fdengine.Reply) error { return errPicky }

// decodeErrors runs a picky command with 100 others behind it, which must get their own replies.
func decodeErrors(t *testing.T, c *Client) []error {
	cmds := []fdengine.Command{&picky{Put{Body: []byte("picky")}}}
	for i := range 100 {
		cmds = append(cmds, &Put{Body: fmt.Appendf(nil, "%d", i)})
	}
	errs := make([]error, len(cmds))
	require.ErrorIs(t, c.DoBatch(bg, cmds, errs), errPicky)
	first := cmds[1].(*Put).ID
	for i, cmd := range cmds[1:] {
		require.NoError(t, errs[i+1])
		require.Equal(t, first+uint64(i), cmd.(*Put).ID)
	}
	return errs
}

// Covers: E-36
func TestAReplyOverTheLimitIsAnsweredAndCutsAndIsNotAskedForAgain(t *testing.T) {
	asked := 0
	bubble(t, func(r request) string {
		switch r.line {
		case "peek 1":
			asked++
			return "FOUND 1 100000\r\n" + strings.Repeat("x", 1000) // the rest never comes
		case "peek 2":
			return "FOUND 2 3\r\nabc\r\n"
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, func(o *Options) { o.Engine.MaxReply = 50_000 })
		defer end(t, c)
		_, err := c.Peek(bg, 1)
		require.ErrorIs(t, err, fdengine.ErrTooLarge)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		got, err := c.Peek(bg, 2)
		require.NoError(t, err)
		require.Equal(t, Peeked{2, []byte("abc")}, got)
		require.Equal(t, 1, asked)
		require.Equal(t, 2, s.conns())
	})
}

func TestAPutOverTheLimitIsNotSent(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		_, err := c.Put(bg, &Put{Body: make([]byte, DefaultMaxJobSize+1)})
		require.ErrorIs(t, err, ErrJobTooBig)
		require.ErrorIs(t, err, fdengine.ErrTooLarge)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		for _, tube := range []string{"a b", "a\r\nquit", "-a", strings.Repeat("a", 201)} {
			require.Error(t, c.Do(bg, StatsTube(tube)))
			require.Error(t, c.Do(bg, PauseTube(tube, 0)))
		}
		require.Error(t, c.Do(bg, Kick("", -1)))
		require.Zero(t, s.conns())
	})
}

// The server is dead for a while between dials that are answered with rubbish.
func TestAServerOfAnotherProtocolIsAFailedDialAndChargesNobody(t *testing.T) {
	bubble(t, func(r request) string {
		if r.conn < 3 {
			return "-ERR unknown command\r\n"
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		p := &Put{Body: []byte("x")}
		_, err := c.Put(bg, p)
		require.NoError(t, err)
		require.Equal(t, 1, p.Sends)
		require.Equal(t, 4, s.conns())
		require.EqualValues(t, 3, c.Usage().Engine.LeaseErrors)
	})
}

// Bodies whose line end falls on the edge of a read come out exact through the whole client (C46 a).
func TestPeekedBodiesAreExactInPiecesOfAnySize(t *testing.T) {
	var size int
	for _, buffer := range []int{1, 511, 1 << 20} {
		bubble(t, func(r request) string {
			if r.line == "peek 1" {
				return fmt.Sprintf("FOUND 1 %d\r\n%s\r\n", size, bait(size))
			}
			return normal
		}, func(t *testing.T, s *fake) {
			s.net.Pipe = memnet.Options{ToClient: buffer}
			c := s.client(t, nil)
			defer end(t, c)
			for _, size = range []int{0, 1, 2, 509, 510, 511, 512, 2100, 4095, 4096, 8190, 16384, 65534, 65536} {
				if buffer == 1 && size > 5000 {
					continue
				}
				got, err := c.Peek(bg, 1)
				require.NoError(t, err)
				require.Equal(t, bait(size), string(got.Body))
				_, err = c.Put(bg, &Put{Body: []byte("n")})
				require.NoError(t, err)
			}
			require.Equal(t, 1, s.conns())
		})
	}
}

// bait is a body of that size that looks like replies.
func bait(size int) string {
	const line = "\r\nRESERVED 1 1\r\n"
	return strings.Repeat(line, size/len(line)+1)[:size]
}

func TestShutdownStoresWhatWasAccepted(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		var told sync.WaitGroup
		for i := range 1000 {
			told.Add(1)
			require.NoError(t, c.Submit(bg, &Put{Body: fmt.Appendf(nil, "%d", i)}, counter(func(err error) {
				require.NoError(t, err)
				told.Done()
			})))
		}
		report, err := c.Shutdown(bg)
		require.NoError(t, err)
		require.LessOrEqual(t, report.Answered, 1000)
		told.Wait()
		<-c.Done()
		require.Len(t, s.mu.jobs, 1000)
		require.ErrorIs(t, c.TrySubmit(&Put{}, never{t}), fdengine.ErrClosed)
	})
}

type counter func(err error)

func (f counter) Complete(_ fdengine.Command, err error) { f(err) }

var _ io.Closer = (*Client)(nil)
