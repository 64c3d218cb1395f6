package fdengine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

func valid() fdengine.Options {
	return fdengine.Options{Protocol: scripted.NewProtocol, Leaser: scripted.NewLeaser(nil)}
}

func TestAllFaultsOfTheOptionsAreReportedAtOnceWithValueAndBound(t *testing.T) {
	require.NoError(t, valid().Validate())
	bad := fdengine.Options{
		Window: -1, WindowBytes: -2, Queue: -3, QueueBytes: -4, MaxRequest: -5, MaxReply: 3 << 30,
		Budget: 70000, MaxRefusals: 70001, MaxRedirects: 256,
		ReadTimeout: time.Microsecond, WriteTimeout: 2 * time.Microsecond, PingEvery: time.Millisecond,
		IdleRelease: time.Second, MaxHold: time.Millisecond, BackoffMin: -6, BackoffMax: -7,
	}
	err := bad.Validate()
	require.Error(t, err)
	for field, value := range map[string]string{
		"Protocol": "required", "Leaser": "required", "Window": "-1", "WindowBytes": "-2", "Queue": "-3", "QueueBytes": "-4",
		"MaxRequest": "-5", "MaxReply": "3221225472", "Budget": "70000", "MaxRefusals": "70001", "MaxRedirects": "256",
		"ReadTimeout": "1µs", "WriteTimeout": "2µs", "PingEvery": "1ms", "IdleRelease": "1s", "MaxHold": "1ms",
		"BackoffMin": "-6ns", "BackoffMax": "-7ns",
	} {
		found := false
		for line := range strings.SplitSeq(err.Error(), "\n") {
			found = found || strings.Contains(line, field+" is "+value) || strings.Contains(line, field+" is required")
		}
		require.True(t, found, "%s is not named with %s in\n%v", field, value, err)
	}
	_, fromNew := fdengine.New(bad)
	require.EqualError(t, fromNew, err.Error())
	crossed := valid()
	crossed.BackoffMin, crossed.BackoffMax = time.Second, time.Millisecond
	require.ErrorContains(t, crossed.Validate(), "BackoffMax is 1ms, must be at least BackoffMin, 1s")
	none := valid()
	none.Budget, none.MaxRefusals, none.MaxRedirects, none.MaxOutage, none.ReadTimeout, none.WriteTimeout = -1, -1, -1, -1, -1, -1
	none.PingEvery, none.IdleRelease, none.MaxHold = -1, -1, -1
	require.NoError(t, none.Validate(), "negative means none")
}

// reached names for each option the test that observes what it does.
var reached = map[string]string{
	"Protocol": "TestAProtocolThatCannotBeMadeIsALeaseFailure", "Leaser": "TestAHandoffMarkPutsTheConnectionSoonAndTheNextLeaseGoesOn",
	"Rerouter": "TestARedirectIsFollowedAndAnASKCarriesItsPrefix", "Ping": "TestAPingThatCannotBeMadeIsNotTriedInACircle",
	"Window": "TestTheWindowHoldsInCommandsAndInBytes", "WindowBytes": "TestTheWindowHoldsInCommandsAndInBytes",
	"Queue": "TestThoseWhoWaitForRoomAreLetInInTheirOrder", "QueueBytes": "TestAnOutageDoesNotGrowTheQueue",
	"ReadTimeout": "TestAReplyThatIsLateCutsTheConnection", "WriteTimeout": "TestAWriteIsLateWhenNoByteIsAccepted",
	"PingEvery":   "TestAnIdleConnectionIsPingedAndASilentPeerIsFoundBeforeTheNextCommand",
	"IdleRelease": "TestAnIdleConnectionIsReleasedThoughItIsPinged", "MaxHold": "TestMaxHoldRecyclesUnderLoadAndLosesAndDoublesNothing",
	"Budget": "TestProgressOfOthersDoesNotRefillABudget", "BackoffMin": "TestThePauseBetweenRefusalsGrowsAndTheServersWordComesFirst",
	"BackoffMax": "TestDialsFollowTheBackoff", "MaxOutage": "TestACommandsOwnWaitWithoutAConnectionIsBounded",
	"MaxRequest": "TestARequestBeyondTheByteLimitEntersAloneAndOneBeyondMaxRequestNever", "MaxReply": "TestAReplyBeyondTheLimitIsAnAnswerAndACut",
	"MaxRefusals": "TestRefusalsAreBounded", "MaxRedirects": "TestRedirectsAreBoundedAndFreeOfTheBudget",
	"StrictOrder": "TestStrictOrderFailsEverythingPublishedBehindAFailure", "Limiter": "TestTheLimiterGetsOneReportPerAllowedClaim",
	"Observer": "TestEachTerminalPathGivesOneSample", "Gate": "TestTheGateMayVetoBeforeAnythingIsQueued",
	"CutOnCancel": "TestACallerWhoLeavesALentConnectionCutsIt", "LoneCaller": "TestALoneCallerServesItselfAfterEightLoneRepliesAndNotBefore",
	"OnPush": "TestPushesAreNeverPairedWithACommand", "Logger": "TestTheLoggerHearsOfSessionEndsAndPanicsOnly",
}

// Covers: S0-3
func TestEveryOptionIsCheckedOrFreeAndReachesSomething(t *testing.T) {
	// Any value of these is fine.
	free := map[string]bool{"Rerouter": true, "Ping": true, "StrictOrder": true, "Limiter": true, "Observer": true, "Gate": true, "OnPush": true, "Logger": true, "CutOnCancel": true, "LoneCaller": true}
	src, err := os.ReadFile("options.go")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(src), "func (o Options) withDefaults()")
	require.True(t, found)
	var tests []byte
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") {
			b, err := os.ReadFile(f.Name())
			require.NoError(t, err)
			tests = append(tests, b...)
		}
	}
	fields := reflect.TypeOf(fdengine.Options{})
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		handled := regexp.MustCompile(`\bo\.` + name + `\b`).MatchString(code)
		require.True(t, free[name] != handled, "%s: neither filled nor checked nor free", name)
		require.True(t, bytes.Contains(tests, []byte("func "+reached[name]+"(")), "%s: no test %q observes it", name, reached[name])
	}
	require.Len(t, reached, fields.NumField())
}

// Covers: E-33
func TestTheGateMayVetoBeforeAnythingIsQueued(t *testing.T) {
	no := errors.New("not you")
	o := fdengine.Options{Gate: func(ctx context.Context, cmd fdengine.Command) error {
		switch cmd.(*scripted.Cmd).Token {
		case "veto":
			return no
		case "boom":
			panic("boom")
		}
		return nil
	}}
	bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
		veto, oc := scripted.Echo("veto"), &outcomes{}
		failsAs(t, r.Do(bg, veto), carry.NotSent, no, fdengine.ErrNotSent)
		failsAs(t, r.Submit(bg, veto, oc), carry.NotSent, no)
		failsAs(t, r.TrySubmit(veto, oc), carry.NotSent, no)
		failsAs(t, r.Stream().Do(bg, veto), carry.NotSent, no)
		failsAs(t, r.Do(bg, scripted.Echo("boom")), carry.NotSent)
		errs := make([]error, 2)
		require.ErrorIs(t, r.DoBatch(bg, []fdengine.Command{veto, scripted.Echo("fine")}, errs), no)
		require.NoError(t, errs[1])
		require.Zero(t, veto.Encodes)
		require.Zero(t, oc.count())
		require.Equal(t, uint64(1), r.Stats().Accepted)
		require.Equal(t, uint64(6), r.Stats().Rejected)
	})
}

func TestTheLoggerHearsOfSessionEndsAndPanicsOnly(t *testing.T) {
	var buf bytes.Buffer
	s := script{"d": first(1, scripted.DropAfter())}
	o := fdengine.Options{Logger: slog.New(slog.NewTextHandler(&buf, nil))}
	bubble(t, setup{Server: s.options(), Engine: o}, func(t *testing.T, r *rig) {
		for _, c := range echoes("c", 50, carry.NoRetry) {
			require.NoError(t, r.Do(bg, c))
		}
		pass(time.Second)
		require.Empty(t, buf.String())
		require.NoError(t, r.Do(bg, scripted.ReplayEcho("d")))
		oc := &outcomes{then: func(fdengine.Command, error) { panic("boom") }}
		submitAll(t, r, oc, scripted.Echo("x"))
		pass(time.Second)
		require.Contains(t, buf.String(), "session ended: cut")
		require.Contains(t, buf.String(), "boom")
		require.Equal(t, 2, strings.Count(buf.String(), "\n"))
	})
}

func TestASpecThatCannotBeIsRejected(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		for _, s := range []fdengine.Spec{
			{Frames: -2}, {Frames: 65536}, {Skip: -1}, {Skip: 1}, {Frames: 3, Skip: 3}, {Frames: fdengine.NoReply, Skip: 1}, {Class: 2},
		} {
			c := scripted.Echo("c")
			c.Traits = s
			failsAs(t, r.Do(bg, c), carry.NotSent, fdengine.ErrNotSent)
		}
		failsAs(t, r.Do(bg, nil), carry.NotSent)
		failsAs(t, r.Do(bg, emptyCmd{}), carry.NotSent)
		failsAs(t, r.Submit(bg, scripted.Echo("c"), nil), carry.NotSent)
		pass(time.Second)
		require.Zero(t, r.server.Conns())
		huge := scripted.ReplayEcho("h")
		huge.Traits.Budget = 1 << 30
		require.NoError(t, r.Do(bg, huge))
	})
}

// emptyCmd encodes to nothing.
type emptyCmd struct{}

func (emptyCmd) AppendRequest(dst []byte) ([]byte, error) { return dst, nil }
func (emptyCmd) DecodeReply(fdengine.Reply) error         { return nil }
