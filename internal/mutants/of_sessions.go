package mutants

// ofSessions breaks the life of a connection with the engine: how it ends, what becomes of it, and time.
func ofSessions() []Mutant {
	const run, sweeper, session = "fdengine/run.go", "fdengine/sweeper.go", "fdengine/session.go"
	return []Mutant{
		{
			Name: "reader-not-joined", File: run,
			Old: "\t<-s.readerDone\n\tl := &e.log", New: "\tl := &e.log",
			Breaks: "the log is cut while the reader walks it",
			Kill:   []Killer{by("fdengine", "TestACutWaitsForTheReader")},
		},
		{
			Name: "put-after-a-cut", File: run,
			Old: "if why == reasonCut || why == reasonRetire {\n\t\tif cause", New: "if why == reasonRetire {\n\t\tif cause",
			Breaks: "a connection that died is put back",
			Kill:   []Killer{by("fdengine", "TestAConnectionThatDiedIsRemovedAndNotPut")},
		},
		{
			Name: "put-after-retire", File: run,
			Old: "if why == reasonCut || why == reasonRetire {\n\t\tif cause", New: "if why == reasonCut {\n\t\tif cause",
			Breaks: "a retired connection is put back",
			Kill:   []Killer{by("fdengine", "TestADecoderThatFailsCostsOneCommandAndRetiresTheConnection")},
		},
		{
			Name: "put-panic-keeps-connection", File: run,
			Old: "\t\t_ = c.Abort()\n\t\te.remove(c, err)\n", New: "",
			Breaks: "a connection whose OnPut hook panicked is neither put nor removed",
			Kill:   []Killer{by("fdengine", "TestAPutHookThatFailsRemovesTheConnection")},
		},
		{
			Name: "permanent-error-retried", File: run,
			Old: "\tif permanent {\n", New: "\tif permanent && e.stopping {\n",
			Breaks: "a wrong password is tried until MaxOutage",
			Kill:   []Killer{by("fdengine", "TestAPermanentLeaseErrorFailsWhatWaitsAtOnceByItsFate")},
		},
		{
			Name: "alone-forgotten", File: session,
			Old: "s.alone = e.alone", New: "s.alone = e.alone && e.stopping",
			Breaks: "after a death without an answer all is sent again at once",
			Kill:   []Killer{by("fdengine", "TestAPoisonCommandBurnsNobodyElsesBudget")},
		},
		{
			Name: "session-backoff-not-growing", File: run,
			Old: "if n < 30 && low<<n < high {", New: "if d = low; n < 0 {",
			Breaks: "dials in a row come without growing pauses",
			Kill:   []Killer{by("fdengine", "TestDialsFollowTheBackoff")},
		},
		{
			Name: "handshake-rest-answers-a-command", File: run,
			Old: "\tif s.w > s.r {\n\t\t// What the handshake", New: "\tif s.w > s.r && e.stopping {\n\t\t// What the handshake",
			Breaks: "bytes that came with the handshake answer the first command",
			Kill:   []Killer{by("fdengine", "TestAReplyNobodyAskedForCutsTheConnection")},
		},
		{
			Name: "handoff-ignored", File: session,
			Old: "case s.conn.ShouldHandoff():", New: "case s.conn.ShouldHandoff() && empty && !empty:",
			Breaks: "a connection marked for handoff is kept",
			Kill:   []Killer{by("fdengine", "TestAHandoffMarkPutsTheConnectionSoonAndTheNextLeaseGoesOn")},
		},
		{
			Name: "read-timeout-not-armed", File: sweeper,
			Old: "return errReadTimeout, 0", New: "return nil, 0",
			Breaks: "a silent peer is waited for without end",
			Kill:   []Killer{by("fdengine", "TestAReplyThatIsLateCutsTheConnection")},
		},
		{
			Name: "write-timeout-not-armed", File: sweeper,
			Old: "return nil, writeAt, pokeLate", New: "return nil, 0, pokeNone",
			Breaks: "a peer that takes no bytes is waited for without end",
			Kill:   []Killer{by("fdengine", "TestAWriteIsLateWhenNoByteIsAccepted")},
		},
		{
			Name: "writes-are-progress", File: "fdengine/writer.go",
			Old: "if l.Reaches(*span) && !l.Left(span, s.passed) && l.Left(span, n) {", New: "if l != nil {",
			Breaks: "later writes put off the read timeout",
			Kill:   []Killer{by("fdengine", "TestLaterWritesDoNotPutOffTheReadTimeout")},
		},
		{
			Name: "pushes-are-progress", File: "fdengine/reader.go",
			Old: "\tif s.replies > 0 {\n\t\ts.base", New: "\tif s.replies > 0 || s.push > 0 {\n\t\ts.base",
			Breaks: "pushes put off the read timeout",
			Kill:   []Killer{by("fdengine", "TestAPushIsNoProgress")},
		},
		{
			Name: "idle-ping-dropped", File: sweeper,
			Old: "\tif ping {\n\t\te.sendPing(s)\n", New: "\tif ping && e.stopping {\n\t\te.sendPing(s)\n",
			Breaks: "nobody notices that the peer of an idle connection is gone",
			Kill:   []Killer{by("fdengine", "TestAnIdleConnectionIsPingedAndASilentPeerIsFoundBeforeTheNextCommand")},
		},
		{
			Name: "outage-before-the-submit-counts", File: sweeper,
			Old: "return r.Start <= now-max", New: "return r.Start <= now",
			Breaks: "a command pays for an outage that began before it",
			Kill:   []Killer{by("fdengine", "TestACommandsOwnWaitWithoutAConnectionIsBounded")},
		},
		{
			Name: "settled-early", File: sweeper,
			Old: "r.SettleBy != 0 && r.SettleBy <= now }", New: "r.SettleBy != 0 && r.SettleBy <= now+int64(100*time.Millisecond) }",
			Breaks: "a settle-by time is met before it has come",
			Kill:   []Killer{by("fdengine", "TestEachSettleByTimeIsMetInItsOwnTimeAndNeverEarly")},
		},
		{
			Name: "inexact-write-believed", File: "fdengine/writer.go",
			Old: "if err != nil && !s.conn.ExactWrite() {", New: "if err == nil && !s.conn.ExactWrite() {",
			Breaks: "the count of a failed write is believed on a connection that cannot tell",
			Kill:   []Killer{by("fdengine", "TestACommandWithoutReplyIsNotCalledSentWhenNobodyKnows")},
		},
		{
			Name: "lock-over-completions", File: run,
			Old: "\tl.Unlock()\n\te.conclude(ends, ErrUnavailable, err)\n", New: "\te.conclude(ends, ErrUnavailable, err)\n\tl.Unlock()\n",
			Breaks: "completions run with the engine's lock held",
			Kill:   []Killer{by("fdengine", "TestTheLockIsFreeWhereverForeignCodeRuns")},
		},
		{
			Name: "lock-over-limiter", File: "fdengine/limiter.go",
			Old: `err := panics.Guard("Allow", func(p *panics.Error) { deny(p) }, e.opt.Limiter.Allow)`, New: `l.Lock()
	err := panics.Guard("Allow", func(p *panics.Error) { deny(p) }, e.opt.Limiter.Allow)
	l.Unlock()`,
			Breaks: "the limiter is asked with the engine's lock held",
			Kill:   []Killer{by("fdengine", "TestTheLockIsFreeWhereverForeignCodeRuns")},
		},
		{
			Name: "wakeup-lost", File: "fdengine/reroute.go",
			Old: "wake := e.unpark()", New: "wake := e.unpark() && e.stopping",
			Breaks: "commands that another engine gives away are not seen before somebody submits",
			Kill:   []Killer{by("fdengine", "TestARerouterThatFailsHalfWayEndsOnlyWhatItHasNotGivenAway")},
		},
		{
			Name: "limiter-not-reported", File: "fdengine/reader.go",
			Old: "\ts.report(nil, false)\n", New: "",
			Breaks: "the limiter is not told what became of a claim",
			Kill:   []Killer{by("fdengine", "TestTheLimiterGetsOneReportPerAllowedClaim")},
		},
		{
			Name: "leftovers-of-a-dead-stream-read", File: "fdengine/reader.go",
			Old: "if s.lost || (s.inChunk", New: "if (s.inChunk",
			Breaks: "what a lone caller left of a stream that is lost is taken for its reply",
			Kill:   []Killer{by("fdengine", "TestForeignCodeThatFailsOnALoneCallersGoroutineCostsWhatItCostsElsewhere")},
		},
		{
			Name: "read-goexit-unheard", File: "fdengine/reader.go",
			Old: `panics.Guard("conn.Read", exit, `, New: `panics.Guard("conn.Read", func(p *panics.Error) { _ = exit }, `,
			Breaks: "bytes that a Read took before its goroutine ended are lost, and each reply goes to the command before its own",
			Kill:   []Killer{by("fdengine", "TestAReadThatExitsIsACut")},
		},
		{
			Name: "reply-begun-before-its-command", File: "fdengine/reader.go",
			Old: "\t\tif s.early {\n", New: "\t\tif s.early && s.frames > 1 {\n",
			Breaks: "a reply that began before its command was sent is taken for its own",
			Kill:   []Killer{by("fdengine", "TestAReplyThatBeganBeforeItsCommandWasSentIsNobodys")},
		},
		{
			Name: "reader-not-called-back", File: "fdengine/writer.go",
			Old: "\t\ts.recall() // somebody must read the replies\n", New: "",
			Breaks: "nobody reads the replies of those who come behind a lone caller",
			Kill:   []Killer{by("fdengine", "TestWhoeverComesBesideALoneCallerIsServedAtOnce")},
		},
		{
			Name: "last-of-a-chain-wakes-nobody", File: "fdengine/chain.go",
			Old: "wake := waits > 0 && e.parked && e.due() && e.unpark()", New: "wake := waits > 0 && e.parked && e.due() && e.stopping && e.unpark()",
			Breaks: "the writer is not woken when all callers of a chunk have been",
			Kill:   []Killer{by("fdengine", "TestAnAnswerThatMakesRoomInTheWindowWakesTheWriterAtOnce")},
		},
	}
}
