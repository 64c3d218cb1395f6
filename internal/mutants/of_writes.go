package mutants

// ofWrites breaks what is known of a write while it goes on, and what a request costs that never leaves whole.
func ofWrites() []Mutant {
	const writer, cut = "fdengine/writer.go", "carry/cut.go"
	const never, leaves = "TestARequestThatNeverLeavesWholeEndsAndHoldsUpNobody", "TestACommandIsNotLateWhileItLeaves"
	const slow, stuck = "TestARequestOfAnySizeGoesOverASlowLink", "TestAReplyIsDueThoughTheWriteBehindItIsStuck"
	return []Mutant{
		{
			Name: "torn-for-ever", File: cut,
			Old: "case torn && d.Alone && r.torn > tornMost:", New: "case false:",
			Breaks: "a request that no server takes whole is begun for ever, with all others behind it",
			Kill:   []Killer{by("fdengine", never)},
		},
		{
			Name: "torn-behind-an-answer", File: cut,
			Old: "torn := !gone && d.Mute &&", New: "torn := !gone &&",
			Breaks: "a request is blamed for connections that die after other answers",
			Kill:   []Killer{by("carry", "TestRandomProgramsEndAsTheModelSays"), by("fdengine", never)},
		},
		{
			Name: "torn-not-alone", File: cut,
			Old: "\t\t\tr.torn = min(r.torn, tornMost) + 1\n\t\t\tleft = true\n", New: "\t\t\tr.torn = min(r.torn, tornMost) + 1\n",
			Breaks: "what a connection dies in the middle of is not sent alone",
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
			Old: "> rt/lookParts && s.conn.ExactWrite()", New: "> rt/lookParts",
			Breaks: "a look ends a connection that cannot tell how far it has come",
			Kill:   []Killer{by("fdengine", slow)},
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
