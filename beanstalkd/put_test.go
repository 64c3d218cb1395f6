package beanstalkd

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
)

func TestAPutIsEncodedWithItsTimesRoundedUpAndItsDefaults(t *testing.T) {
	for _, tc := range []struct {
		p    Put
		want string
	}{
		{Put{}, "put 0 0 60 0\r\n\r\n"},
		{Put{Body: []byte("x\r\n"), Priority: math.MaxUint32, Delay: time.Millisecond, TTR: 1001 * time.Millisecond}, "put 4294967295 1 2 3\r\nx\r\n\r\n"},
		{Put{Body: []byte("x"), Delay: time.Minute, TTR: time.Second, Tube: "t"}, "use t\r\nput 0 60 1 1\r\nx\r\n"},
		{Put{TTR: math.MaxUint32 * time.Second}, "put 0 0 4294967295 0\r\n\r\n"},
	} {
		got, err := tc.p.AppendRequest([]byte("before"))
		require.NoError(t, err)
		require.Equal(t, "before"+tc.want, string(got))
	}
	for _, p := range []Put{
		{TTR: -1}, {Delay: -1}, {TTR: math.MaxUint32*time.Second + 1}, {Delay: math.MaxInt64}, {Tube: "a b"}, {Tube: "-a"}, {Tube: strings.Repeat("a", 201)}, {Tube: "a\r\nquit"},
	} {
		got, err := p.AppendRequest([]byte("before"))
		require.Error(t, err)
		require.Equal(t, "before", string(got))
	}
}

func TestOnlyAVouchedPutIsOfClassReplay(t *testing.T) {
	require.Equal(t, fdengine.Spec{}, new(Put).Spec())
	p := &Put{Replay: true, Budget: 7, Timeout: time.Second, Tube: "t"}
	require.Equal(t, fdengine.Spec{Class: carry.Replay, Budget: 7, Timeout: time.Second, Frames: 2}, p.Spec())
}

func TestEncodingAndDecodingAPutDoesNotAllocate(t *testing.T) {
	p := &Put{Body: make([]byte, 100)}
	buf := make([]byte, 0, 256)
	reply := []byte("INSERTED 123456\r\n")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = p.Spec()
		buf, _ = p.AppendRequest(buf[:0])
		if p.Verdict(reply, false).Conn != fdengine.Keep || p.DecodeReply(fdengine.Reply{Frame: reply, Sends: 1}) != nil {
			t.Fatal("refused")
		}
	}))
	require.EqualValues(t, 123456, p.ID)
}

// The other refusals go through the same table as in TestEachReplyHasTheVerdictOfTheTable.
// Covers: E-31
func TestWhatMustNotShareAConnectionIsRefusedBeforeItIsWrittenByEveryWayIn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		c := s.client(t, nil)
		defer end(t, c)
		for _, make := range []func() *Cmd{
			Reserve, func() *Cmd { return ReserveWithTimeout(time.Second) }, func() *Cmd { return ReserveJob(1) }, func() *Cmd { return Delete(1) },
			func() *Cmd { return Release(1, 0, 0) }, func() *Cmd { return Bury(1, 0) }, func() *Cmd { return Touch(1) },
			func() *Cmd { return Watch("a") }, func() *Cmd { return Ignore("a") },
		} {
			st := c.Stream()
			for way, err := range map[string]error{
				"Do": c.Do(bg, make()), "Submit": c.Submit(bg, make(), never{t}), "TrySubmit": c.TrySubmit(make(), never{t}),
				"DoBatch": c.DoBatch(bg, []fdengine.Command{make()}, nil), "Stream": st.Do(bg, make()),
			} {
				var ns *NotSharedError
				require.ErrorAs(t, err, &ns, way)
				require.Equal(t, make().Name(), ns.Command)
				require.NotEmpty(t, ns.Why+ns.Instead)
				require.ErrorIs(t, err, ErrNotShared)
				require.Equal(t, carry.NotSent, fdengine.FateOf(err))
			}
		}
		require.Zero(t, s.conns(), "not even dialed")
		require.Error(t, c.Do(bg, new(Cmd)))
	})
}

type never struct{ t *testing.T }

func (n never) Complete(fdengine.Command, error) { n.t.Error("completed") }

func TestOneTubeIsUsedForGoodAndAnotherIsRefused(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		c := s.client(t, func(o *Options) { o.Tube = "mine" })
		defer end(t, c)
		_, err := c.Put(bg, &Put{Body: []byte("a")})
		require.NoError(t, err)
		_, err = c.PutIn(bg, "mine", &Put{Body: []byte("b")})
		require.NoError(t, err)
		_, err = c.PutIn(bg, "other", &Put{Body: []byte("c")})
		require.ErrorIs(t, err, ErrOtherTube)
		require.Equal(t, carry.NotSent, fdengine.FateOf(err))
		require.Equal(t, []string{"put 0 0 60 1", "put 0 0 60 1"}, s.lines(0))
		for _, j := range s.mu.jobs {
			require.Equal(t, "mine", j.tube)
		}
	})
}

func TestManyTubesAreUsedOneByOneInOnePieceWithTheirCommand(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *fake) {
		c := s.client(t, func(o *Options) { o.Tube, o.ManyTubes = "own", true })
		var cmds []fdengine.Command
		for i := range 300 {
			tube := []string{"", "a", "b"}[i%3]
			cmds = append(cmds, &Put{Body: fmt.Appendf(nil, "%s%d", tube, i), Tube: tube}, Kick(tube, 1))
		}
		require.NoError(t, c.DoBatch(bg, cmds, nil))
		end(t, c)
		lines := s.lines(0)
		require.Len(t, lines, 4*300)
		for i := 0; i < len(lines); i += 2 {
			require.Equal(t, "use "+[]string{"own", "a", "b"}[i/4%3], lines[i])
		}
		for i, cmd := range cmds {
			if p, ok := cmd.(*Put); ok {
				require.EqualValues(t, i/2+1, p.ID)
				require.Equal(t, cmp(p.Tube, "own"), s.mu.jobs[p.ID-1].tube)
				require.Equal(t, string(p.Body), s.mu.jobs[p.ID-1].body)
			}
		}
	})
}

func cmp(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// beanstalkd takes a put behind a refused `use`, into the tube that was used before.
func TestAJobThatWasStoredInAnotherTubeIsReportedWithItsIdAndNotStoredAgain(t *testing.T) {
	bubble(t, func(r request) string {
		if r.line == "use full" {
			return "OUT_OF_MEMORY\r\n"
		}
		return normal
	}, func(t *testing.T, s *fake) {
		c := s.client(t, func(o *Options) { o.ManyTubes = true })
		defer end(t, c)
		_, err := c.PutIn(bg, "full", &Put{Body: []byte("x"), Replay: true})
		var wrong *WrongTubeError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "full", wrong.Tube)
		require.EqualValues(t, 1, wrong.ID)
		require.ErrorIs(t, err, ErrOutOfMemory)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		require.Equal(t, 1, s.stored("x"))
		_, err = c.PutIn(bg, "fine", &Put{Body: []byte("y")})
		require.NoError(t, err)
		require.Equal(t, 1, s.conns())
	})
}
