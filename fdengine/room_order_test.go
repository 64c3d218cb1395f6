package fdengine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// A big request waits for room while there is some for small ones. They must not pass it, or it waits for good.
func TestASmallRequestDoesNotPassABigOneThatWaitsForRoom(t *testing.T) {
	o := fdengine.Options{WindowBytes: 1000, QueueBytes: 1000}
	bubble(t, setup{NoStart: true, Engine: o}, func(t *testing.T, r *rig) {
		oc := &outcomes{}
		first := &scripted.Cmd{Token: "first", Args: []string{strings.Repeat("x", 1200)}}
		big := &scripted.Cmd{Token: "big", Args: []string{strings.Repeat("x", 1000)}}
		small := scripted.Echo("small")
		submitAll(t, r, oc, first)
		go submitAll(t, r, oc, big)
		synctest.Wait()
		failsAs(t, r.TrySubmit(small, oc), carry.NotSent, fdengine.ErrQueueFull)
		go submitAll(t, r, oc, small)
		synctest.Wait()
		r.listen()
		pass(2 * time.Second)
		ok(t, oc, first, big, small)
	})
}
