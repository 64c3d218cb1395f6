package fdengine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/scripted"
)

// A reply to a lone caller, behind commands without reply that it proves to have been sent, ended a chain that the reader waited for,
// and made it stand by as well. It wrote what came next, and then nobody read the replies until the sweeper came by.
//
// Covers: E-11
func TestAReaderThatStandsByHasNoTurnToWrite(t *testing.T) {
	turnBubble(t, setup{}, func(t *testing.T, r *rig, _ *turns) {
		r.SetSoloAfter(1)
		r.SetWorthWaiting(1)
		for i := range 50 {
			start, o, c := time.Now(), &outcomes{}, scripted.Echo("next"+itoa(i))
			require.NoError(t, r.Do(bg, scripted.Echo("lone"+itoa(i))))
			submitAll(t, r, o, c)
			synctest.Wait()
			ok(t, o, c)
			require.Zero(t, time.Since(start), "somebody reads")
			synctest.Wait()
		}
	})
}
