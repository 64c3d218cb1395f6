package mutants

// ofTurns breaks the reader's turn to write, and the chains of callers it waits for.
func ofTurns() []Mutant {
	const turn, gather, writer, sweeper = "fdengine/turn.go", "fdengine/gather.go", "fdengine/writer.go", "fdengine/sweeper.go"
	claims := []Killer{by("fdengine", "TestTheReaderClaimsOnlyWhatTheEngineGoroutineWouldToo")}
	parts := []Killer{by("fdengine", "TestWhatTheConnectionDoesNotTakeAtOnceTheEngineGoroutineWrites")}
	return []Mutant{
		{
			Name: "rest-of-a-turn-forgotten", File: writer,
			Old: "\t\t\ts.send(span, from)\n", New: "\t\t\ts.send(span, len(span.Bytes)+0*from)\n",
			Breaks: "what the connection did not take from the reader is never written",
			Kill:   parts,
		},
		{
			Name: "rest-of-a-turn-not-announced", File: turn,
			Old: "\t\ts.rest, s.written = true, n\n", New: "\t\ts.written = n\n",
			Breaks: "the engine goroutine is not told of what the reader left to it",
			Kill:   []Killer{by("fdengine", "TestAConnectionThatEndsWhileTheRestWaitsLeavesExactFates")},
		},
		{
			Name: "rest-of-a-turn-from-the-start", File: writer,
			Old: "span, from := s.span, s.written\n", New: "span, from := s.span, 0*s.written\n",
			Breaks: "bytes that left are written once more",
			Kill:   parts,
		},
		{
			Name: "turn-never-over", File: writer,
			Old:    "s.writing, s.inline, s.taken, s.written, s.assumed = false, false, false, n, sure != n",
			New:    "s.writing, s.inline, s.written, s.assumed = false, false, n, sure != n",
			Breaks: "after the reader has written, nobody does",
			Kill:   []Killer{by("fdengine", "TestNothingWaitsBehindAWriteOfTheReadersThatHasReturned")},
		},
		{
			Name: "kept-for-good", File: writer,
			Old: "\t\twake = e.unpark() || wake\n\t}\n\tl.Unlock()", New: "\t}\n\tl.Unlock()",
			Breaks: "the engine goroutine, which waited for the reader's write, is not told of its end",
			Kill:   []Killer{by("fdengine", "TestAnEngineGoroutineKeptByTheReadersWriteIsToldOfItsEnd")},
		},
		{
			Name: "turn-not-awaited", File: gather,
			Old: "return s.waited || (", New: "return (",
			Breaks: "the engine goroutine writes a part of what the reader is about to write",
			Kill:   []Killer{by("fdengine", "TestABigSubmitDuringAChainIsTheReadersToWriteToo")},
		},
		{
			Name: "turn-without-a-look", File: turn,
			Old: "surplus, _ = s.conn.Readable()", New: "surplus = false",
			Breaks: "what the server says while the reader waits for a chain is taken for the answer to what it writes then",
			Kill:   []Killer{by("fdengine", "TestWhatTheServerSaysWhileTheReaderWaitsForAChainAnswersNothingThatItWritesThen")},
		},
		{
			Name: "cut-does-not-end-the-wait", File: "fdengine/session.go",
			Old: "cause\n\ts.endWait()\n", New: "cause\n",
			Breaks: "a cut, and Close, wait for a chain of callers that has come to a halt",
			Kill:   []Killer{by("fdengine", "TestACutEndsTheWaitForAChainAtOnce")},
		},
		{
			Name: "chain-without-end", File: turn,
			Old: "s.comesOn = at != 0 && now-at < int64(turnMost) && ", New: "s.comesOn = at != 0 && ",
			Breaks: "callers who submit one after the other keep the reader for good",
			Kill:   []Killer{by("fdengine", "TestAChainThatComesOnKeepsTheReaderForFourTicksAtMost", "TestHowLongAReaderWaitsForAChain")},
		},
		{
			Name: "chain-that-comes-on-cut-short", File: turn,
			Old: "now-at >= int64(tick) && !s.comesOn {", New: "now-at >= int64(tick) {",
			Breaks: "the reader goes on reading though callers are submitting",
			Kill:   []Killer{by("fdengine", "TestAChainThatEndsInTimeIsWrittenByTheReaderHoweverLongItCameOn")},
		},
		{
			Name: "overdue-though-a-chain-comes-on", File: gather,
			Old: "case before != s.waitsSince || s.comesOn:", New: "case before != s.waitsSince:",
			Breaks: "a write is forced in the middle of a chain that comes on",
			Kill:   []Killer{by("fdengine", "TestAChainThatEndsInTimeIsWrittenByTheReaderHoweverLongItCameOn")},
		},
		{
			Name: "overdue-at-once", File: gather,
			Old: "case before != s.waitsSince || s.comesOn:", New: "case before > s.waitsSince || s.comesOn:",
			Breaks: "a command that has waited for less than a tick is forced out alone",
			Kill:   []Killer{by("fdengine", "TestWhatWaitsForRepliesIsForcedOutAfterAWholeTickAndNotBefore")},
		},
		{
			Name: "turn-taken-for-the-writers", File: writer,
			Old: "if s.writing && !s.taken && s.inline == byCaller {", New: "if s.writing && s.inline == byCaller {",
			Breaks: "a fault of the engine goroutine speaks for a write that the reader is making",
			Kill:   []Killer{by("fdengine", "TestAFaultOfTheEngineGoroutineSaysNothingOfTheReadersWrite")},
		},
		{
			Name: "try-that-fell-left-nothing", File: turn,
			Old: "s.taken, s.writing, s.written, s.assumed = false, false, s.span.Size, true", New: "s.taken, s.writing, s.written, s.assumed = false, false, 0, true",
			Breaks: "what a connection took before it panicked is called not sent",
			Kill:   []Killer{by("fdengine", "TestATryThatFailsInForeignCodeCostsItsConnectionAndMayHaveLeft")},
		},
		{
			Name: "turn-while-another-span-is-written", File: turn,
			Old: "s.inline || s.taken || ", New: "s.inline || ", Breaks: "two spans are written at a time", Kill: claims,
		},
		{
			Name: "turn-beside-a-lone-caller", File: turn,
			Old: "s.inline || s.taken || ", New: "s.taken || ", Breaks: "the reader writes beside a lone caller", Kill: claims,
		},
		{
			Name: "turn-at-the-end", File: turn,
			Old: "s.ending != reasonNone || len", New: "len", Breaks: "the reader writes on a connection that is being given back", Kill: claims,
		},
		{
			Name: "turn-that-is-not-asked-for-the-end", File: turn,
			Old: " || s.wantsEnd(e.clock.Load()) != reasonNone {", New: " {",
			Breaks: "the reader writes on a connection that is to be given back",
			Kill:   claims,
		},
		{
			Name: "turn-before-the-first-answer", File: turn,
			Old: "s.alone && s.answers == 0 || ", New: "", Breaks: "more than one command goes to a server after a death without an answer", Kill: claims,
		},
		{
			Name: "turn-before-what-is-rerouted", File: turn,
			Old: " || len(e.rerouting) > 0 ||\n", New: " ||\n", Breaks: "the reader writes before what is to be handed over", Kill: claims,
		},
		{
			Name: "turn-before-what-comes-back", File: turn,
			Old: "ok && due <= e.clock.Load() {", New: "ok && due < 0*e.clock.Load()-1 {",
			Breaks: "what comes back from its pause is overtaken",
			Kill:   claims,
		},
		{
			Name: "turn-of-one-that-stands-by", File: turn,
			Old: "s.standing || ", New: "",
			Breaks: "nobody reads the replies to what the reader wrote last before it stands by",
			Kill:   []Killer{by("fdengine", "TestAReaderThatStandsByHasNoTurnToWrite")},
		},
		{
			Name: "turn-under-observation", File: turn,
			Old: "{ return o.Observer == nil && o.Limiter == nil }", New: "{ return true }",
			Breaks: "a limiter is not asked, an observer not told",
			Kill:   []Killer{by("fdengine", "TestTheReaderWritesNothingWhereItMayNot")},
		},
		{
			Name: "batch-breaks-the-chain", File: "fdengine/batch.go",
			Old: "\t\t\te.withdrawBatch(b, ctx.Err())\n\t\t\tb.wait()\n", New: "\t\t\te.withdrawBatch(b, ctx.Err())\n\t\t\t<-b.ready\n",
			Breaks: "who stands behind a batch whose caller leaves is never woken",
			Kill:   []Killer{by("fdengine", "TestABatchWhoseCallerLeavesWhenItHasBeenAnsweredStillWakesTheNext")},
		},
		{
			Name: "big-chunk-in-one-chain", File: "fdengine/chain.go",
			Old: "\tif s.n == chainMax {\n", New: "\tif s.n < 0 {\n",
			Breaks: "the reader waits for a chain of any length",
			Kill:   []Killer{by("fdengine", "TestNobodyWaitsForSeveralChains")},
		},
	}
}
