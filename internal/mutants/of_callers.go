package mutants

// ofCallers breaks what callers are promised: room, their own outcome, a bounded end.
func ofCallers() []Mutant {
	return []Mutant{
		{
			Name: "room-barged-into", File: "fdengine/submit.go",
			Old: "e.room.first != nil || !e.fits(1, ", New: "!e.fits(1, ",
			Breaks: "who comes later is let in before those who wait",
			Kill:   []Killer{by("fdengine", "TestASmallRequestDoesNotPassABigOneThatWaitsForRoom")},
		},
		{
			Name: "room-not-given-back", File: "fdengine/room.go",
			Old: "\t\te.spend(n, size)\n\t\te.letIn()\n", New: "\t\te.letIn()\n",
			Breaks: "a reservation of a caller who left at the moment it was granted is lost",
			Kill:   []Killer{by("fdengine", "TestACallerWhoLeavesAtTheMomentItIsLetInGivesTheRoomBack")},
		},
		{
			Name: "room-given-back-in-silence", File: "fdengine/room.go",
			Old: "\t\te.spend(n, size)\n\t\te.letIn()\n", New: "\t\te.spend(n, size)\n",
			Breaks: "nobody is let into the room of a caller who left at the moment it was granted",
			Kill:   []Killer{by("fdengine", "TestWhoWaitsBehindACallerWhoLeftWhenItWasLetInIsLetIn")},
		},
		{
			Name: "grant-left-in-the-waiter", File: "fdengine/room.go",
			Old: "\tcase w.granted:\n\t\t<-w.in\n", New: "\tcase w.granted:\n",
			Breaks: "who waits for room next is let in by the grant of a caller who left",
			Kill:   []Killer{by("fdengine", "TestACallerWhoLeavesAtTheMomentItIsLetInGivesTheRoomBack")},
		},
		{
			Name: "carry-ends-twice", File: "fdengine/reroute.go",
			Old: "\tif !c.used.CompareAndSwap(false, true) {\n\t\treturn\n\t}\n", New: "",
			Breaks: "a carry is failed after it was adopted",
			Kill:   []Killer{by("fdengine", "TestACarryMayBeFailedOnceAndOnlyOnce")},
		},
		{
			Name: "reroute-panic-loses-carries", File: "fdengine/reroute.go",
			Old: "\t\t\tc.Fail(err)\n", New: "\t\t\t_ = c\n",
			Breaks: "the commands of a Rerouter that panicked never end",
			Kill:   []Killer{by("fdengine", "TestARerouterThatFailsEndsTheCarriesByTheirFate")},
		},
		{
			Name: "done-before-the-goroutines", File: "fdengine/engine.go",
			Old: "if e.alive.Add(-1) == 0 {", New: "if e.alive.Add(-1) <= 1 {",
			Breaks: "Done is closed while a goroutine still runs",
			Kill:   []Killer{by("fdengine", "TestACompletionThatBlocksHoldsUpNeitherCloseNorShutdown")},
		},
		{
			Name: "shutdown-drops-accepted", File: "fdengine/run.go",
			Old: "case !e.log.Empty():\n", New: "case !e.log.Empty() && !e.stopping:\n",
			Breaks: "Shutdown does not dial for what was accepted",
			Kill:   []Killer{by("fdengine", "TestShutdownMayDialToDrain")},
		},
		{
			Name: "close-forgets-what-waits", File: "fdengine/close.go",
			Old: "ends := e.settleAll(func(*carry.Record[entry]) bool { return true })\n\tl.Forget()", New: "ends := e.settleAll(func(r *carry.Record[entry]) bool { return r.Maybe() })\n\tl.Forget()",
			Breaks: "Close leaves commands without an outcome while foreign code keeps the engine goroutine",
			Kill:   []Killer{by("fdengine", "TestCloseEndsWhatWaitsBehindARerouterThatBlocks")},
		},
		{
			Name: "tls-closed-politely", File: "fdengine/close.go",
			Old: "\t\t_ = s.conn.Abort()\n", New: "\t\t_ = s.conn.LocalAddr()\n",
			Breaks: "Close waits for a peer that takes no bytes",
			Kill:   []Killer{by("fdengine", "TestShutdownAndCloseEndWhileTheWriterIsBlocked")},
		},
		{
			Name: "gate-unguarded", File: "fdengine/submit.go",
			Old: `panics.Catch("Gate", func() error { return e.opt.Gate(ctx, cmd) })`, New: "e.opt.Gate(ctx, cmd)",
			Breaks: "a panic of the gate reaches the caller",
			Kill:   []Killer{by("fdengine", "TestTheGateMayVetoBeforeAnythingIsQueued")},
		},
	}
}
