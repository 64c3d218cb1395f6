package fdengine_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// What a fresh reader broke with numbers nobody had in mind.

// A Timeout near the largest duration overflowed when it was added to now: the command had expired before it came.
func TestATimeoutBeyondAllTimeIsNone(t *testing.T) {
	for _, timeout := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 200 * 365 * 24 * time.Hour} {
		s := script{"a": always(scripted.Delay(time.Second))}
		bubble(t, setup{Server: s.options()}, func(t *testing.T, r *rig) {
			a := scripted.Echo("a")
			a.Traits.Timeout = timeout
			require.NoError(t, r.Do(bg, a))
		})
	}
}

// A server asked for a pause of days, or of so long that the sum overflowed and there was none. The one held the
// command's room for days, the other asked the server without any pause.
//
// Covers: E-11
func TestAPauseTheServerAsksForIsAtMostAMinute(t *testing.T) {
	for _, line := range []string{"LOADING retry=86400000", "LOADING retry=9223372036854"} {
		bubble(t, setup{Server: script{"a": first(1, scripted.Refuse(line))}.options()}, func(t *testing.T, r *rig) {
			start, a := time.Now(), scripted.Echo("a")
			require.NoError(t, r.Do(bg, a))
			require.GreaterOrEqual(t, time.Since(start), 59*time.Second, line)
			require.Less(t, time.Since(start), 62*time.Second, line)
			require.Equal(t, 2, a.Sends)
		})
	}
}

// Window and Queue were added up. Large ones overflowed to less than nothing, and nothing was ever let in.
func TestLimitsOfRoomHaveBoundsThemselves(t *testing.T) {
	for field, set := range map[string]func(o *fdengine.Options, v int){
		"Window":      func(o *fdengine.Options, v int) { o.Window = v },
		"Queue":       func(o *fdengine.Options, v int) { o.Queue = v },
		"WindowBytes": func(o *fdengine.Options, v int) { o.WindowBytes = v },
		"QueueBytes":  func(o *fdengine.Options, v int) { o.QueueBytes = v },
	} {
		o := valid()
		set(&o, math.MaxInt)
		require.ErrorContains(t, o.Validate(), field+" is 9223372036854775807, must be at most")
	}
	o := valid()
	o.Window, o.Queue, o.WindowBytes, o.QueueBytes = 1<<30, 1<<30, 1<<40, 1<<40
	require.NoError(t, o.Validate())
	o.Protocol, o.Leaser = nil, nil // the rig's
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		require.NoError(t, r.TrySubmit(scripted.Echo("a"), &outcomes{}), "there is room at the bound")
	})
}

// A redirect's hint added 255 frames and more, or a prefix beyond what a record counts. The counts wrapped: the
// command was a success without a reply, or its bytes were torn apart.
//
// Covers: E-18
func TestAHintThatDoesNotFitIsTheAnswer(t *testing.T) {
	nowhere := errors.New("nowhere")
	for name, c := range map[string]struct {
		frames int
		hint   fdengine.Hint
		fits   bool
	}{
		"frames at the bound":    {1, fdengine.Hint{Frames: 255}, true},
		"one frame more":         {1, fdengine.Hint{Frames: 256}, false},
		"frames below zero":      {1, fdengine.Hint{Frames: -1}, false},
		"prefix at the bound":    {1, fdengine.Hint{Prefix: make([]byte, 65535), Frames: 1}, true},
		"prefix one byte longer": {1, fdengine.Hint{Prefix: make([]byte, 65536), Frames: 1}, false},
		"frames with those it has, at the bound": {
			65534, fdengine.Hint{Frames: 1}, true},
		"frames with those it has, one more": {
			65535, fdengine.Hint{Frames: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pair{}
			p.set(func(_ error, cs []*fdengine.Carry) {
				for _, c := range cs {
					c.Fail(nowhere)
				}
			})
			s := script{"a": always(scripted.Refuse("AWAY"))}
			bubble(t, setup{Server: s.options(), Engine: fdengine.Options{Rerouter: p}}, func(t *testing.T, r *rig) {
				cmd := &scripted.JudgingCmd{Cmd: *scripted.Echo("a")}
				cmd.Traits.Frames = c.frames
				for range c.frames - 1 {
					cmd.Prefix = append(cmd.Prefix, []string{"ECHO", "p"})
				}
				cmd.Judge = func([]byte, bool) fdengine.Verdict {
					return fdengine.Verdict{Then: fdengine.Reroute, Ran: fdengine.RanNo, Hint: c.hint}
				}
				err := r.Do(bg, cmd)
				if c.fits {
					failsAs(t, err, carry.NotSent, nowhere)
					require.Equal(t, 1, p.mu.calls)
					return
				}
				require.NotErrorIs(t, err, nowhere)
				require.Equal(t, 1, cmd.Decodes, "the refusal is delivered")
				require.Contains(t, cmd.Raw, "-AWAY")
				require.Zero(t, p.mu.calls)
			})
		})
	}
}

// A connection could not be had for longer than MaxOutage. The error said that, and not why.
func TestAnOutageSaysWhyThereIsNoConnection(t *testing.T) {
	refused := errors.New("refused")
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		r.leaser.OnLease = func(int) error { return refused }
		failsAs(t, r.Do(bg, scripted.Echo("a")), carry.NotSent, fdengine.ErrUnavailable, refused)
	})
}
