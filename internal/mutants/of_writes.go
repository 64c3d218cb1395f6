package mutants

// ofWrites breaks what is known of a write while it goes on, and what a request costs that never leaves whole.
func ofWrites() []Mutant {
	const writer, cut = "fdengine/writer.go", "carry/cut.go"
	const never, leaves = "TestARequestThatNeverLeavesWholeEndsAndHoldsUpNobody", "TestACommandIsNotLateWhileItLeaves"
	const slow, stuck = "TestARequestOfAnySizeGoesOverASlowLink", "TestAReplyIsDueThoughTheWriteBehindItIsStuck"
	return []Mutant{
		{
			Name: "torn-for-ever", File: cut,
			Old: "return t.n > max(tornMost, budget) && now-t.since >= most", New: "return false",
			Breaks: "a request that no server takes whole is begun for ever, with all others behind it",
			Kill:   []Killer{by("fdengine", never)},
		},
		{
			Name: "torn-behind-an-answer", File: cut,
			Old: "if !gone && d.Mute &&", New: "if !gone &&",
			Breaks: "a request is blamed for connections that die after other answers",
			Kill:   []Killer{by("carry", "TestRandomProgramsEndAsTheModelSays"), by("fdengine", never)},
		},
		{
			Name: "torn-in-no-time", File: cut,
			Old: " && now-t.since >= most", New: "",
			Breaks: "large requests fail while a server starts",
			Kill:   []Killer{by("fdengine", never), by("fdengine", "TestARequestThatWasTornOftenArrivesWhenItCan")},
		},
		{
			Name: "torn-once-taken-counts", File: cut,
			Old: "\t\t\tl.torn = tears{} // this", New: "\t\t\t_ = tears{} // this",
			Breaks: "a request that a server has taken whole is blamed for what was before",
			Kill:   []Killer{by("carry", "TestRandomProgramsEndAsTheModelSays"), by("fdengine", "TestARequestThatWasTakenWholeOnceIsNotToBlame")},
		},
		{
			Name: "torn-beyond-its-budget", File: cut,
			Old: "t.n > max(tornMost, budget)", New: "t.n > tornMost",
			Breaks: "large requests do not get the tries that were set",
			Kill:   []Killer{by("fdengine", never)},
		},
		{
			Name: "torn-once-in-no-outage", File: cut,
			Old: "t.n > max(tornMost, budget) && now", New: "now",
			Breaks: "the first tear of a request ends it where outages may be short",
			Kill:   []Killer{by("fdengine", never)},
		},
		{
			Name: "outage-without-end-tears-without-end", File: "fdengine/run.go",
			Old: "\t\tpatience = defaultOutage", New: "\t\tpatience = 1 << 62",
			Breaks: "where no outage is too long, a request that no server takes whole is begun for ever",
			Kill:   []Killer{by("fdengine", never)},
		},
		{
			Name: "safe-pieces-too-long", File: writer,
			Old: "pieceSafe = 16 << 10", New: "pieceSafe = pieceMax",
			Breaks: "a slow TLS link is taken for a dead one",
			Kill:   []Killer{by("fdengine", slow)},
		},
		{
			Name: "look-at-what-cannot-tell", File: "fdengine/sweeper.go",
			Old: ">= rt/lookParts && s.conn.ExactWrite()", New: ">= rt/lookParts",
			Breaks: "a look ends a connection that cannot tell how far it has come",
			Kill:   []Killer{by("fdengine", slow)},
		},
		{
			Name: "look-at-each-tick", File: "fdengine/sweeper.go",
			Old: "now-max(writeAt, s.lookedAt) >= rt/lookParts", New: "now-writeAt >= rt/lookParts",
			Breaks: "a stuck write is asked 200 times a second",
			Kill:   []Killer{by("fdengine", "TestAStuckWriteIsAskedFourTimesInEachReadTimeout")},
		},
		{
			Name: "turn-has-not-left", File: "fdengine/turn.go",
			Old: "\t\ts.passes(&span, n, now)\n", New: "\t\t_ = now\n",
			Breaks: "what the reader wrote has no reply due while the rest is stuck",
			Kill:   []Killer{by("fdengine", "TestAReplyIsDueThoughNothingIsTakenBehindTheReadersWrite")},
		},
		{
			Name: "write-without-deadline-never-late", File: writer,
			Old: "if !s.pull(at, why) && why == pokeLate {", New: "if !s.pull(at, why) && why == pokeNone {",
			Breaks: "a connection that cannot set deadlines is waited for without end",
			Kill:   []Killer{by("fdengine", "TestAWriteWhoseDeadlineCannotBeSetIsLateAllTheSame")},
		},
		{
			Name: "much-unsent-under-tls", File: "pool/establish.go",
			Old: "if stream != raw || p.opts.TLS != nil {", New: "if stream != raw && p.opts.TLS != nil {",
			Breaks: "a slow TLS link is taken for a dead one",
			Kill:   []Killer{by("pool", "TestASocketUnderTLSHoldsLittleThatIsNotSent")},
		},
		{
			Name: "look-never", File: "fdengine/sweeper.go",
			Old: "return nil, writeAt, pokeLook", New: "return nil, 0, pokeNone",
			Breaks: "ReadTimeout does not count while what follows in the same write is stuck",
			Kill:   []Killer{by("fdengine", stuck)},
		},
		{
			Name: "look-ends-the-write", File: writer,
			Old: "goesOn := poked == pokeLook || poked", New: "goesOn := poked",
			Breaks: "a look that finds nothing new is taken for WriteTimeout",
			Kill:   []Killer{by("fdengine", leaves), by("fdengine", stuck)},
		},
		{
			Name: "look-is-progress", File: writer,
			Old: "if m > 0 {\n\t\t\tat", New: "if m >= 0 {\n\t\t\tat",
			Breaks: "looks put off WriteTimeout",
			Kill:   []Killer{by("fdengine", never)},
		},
		{
			Name: "span-begins-where-the-last-ended", File: writer,
			Old: "s.span, s.written, s.passed, s.writing = span, 0, 0, true", New: "s.span, s.written, s.writing = span, 0, true",
			Breaks: "behind a longer write a command is late before it has left",
			Kill:   []Killer{by("fdengine", leaves)},
		},
		{
			Name: "quiet-one-has-left", File: "carry/span.go",
			Old: "case b.recs[i].Frames != 0:", New: "case true:",
			Breaks: "behind one without reply a command is late before it has left",
			Kill:   []Killer{by("fdengine", leaves)},
		},
		{
			Name: "one-miss-ends-the-guess", File: "fdengine/parcel.go",
			Old: "if p.misses++; p.misses >= mostMisses {", New: "if p.misses++; p.misses > 0 {",
			Breaks: "big requests between small ones allocate twice",
			Kill:   []Killer{by("fdengine", "TestABigRequestOfABatchFindsItsBufferAmongSmallOnes")},
		},
		{
			Name: "guess-of-any-size", File: "fdengine/parcel.go",
			Old: "p.big, p.misses = min(cap(d.enc), keepScratch), 0", New: "p.big, p.misses = cap(d.enc), 0",
			Breaks: "commands that fail behind a very big one allocate its size each",
			Kill:   []Killer{by("fdengine", "TestABatchOfFailingCommandsBehindABigOneTakesNoMemoryForEach")},
		},
	}
}
