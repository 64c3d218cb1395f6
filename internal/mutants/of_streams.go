package mutants

// ofStreams breaks the order of a Stream: what fails behind a gap, and what goes again.
func ofStreams() []Mutant {
	const cut, stream = "carry/cut.go", "carry/stream.go"
	return []Mutant{
		{
			Name: "stream-survives-a-loss", File: cut,
			Old: "broke = r.broke() || broke\n\t\t\tstrict", New: "strict",
			Breaks: "a Stream goes on behind a command that failed",
			Kill:   []Killer{by("fdengine", "TestAFailureBreaksItsStreamAndNobodyElse"), by("carry", "TestScriptsPrintWhatTheyPrintedBefore")},
		},
		{
			Name: "stream-survives-a-ghost", File: cut,
			Old: "if (gone || r.maybe) && r.Frames != 0 {", New: "if r.maybe && r.Frames != 0 {",
			Breaks: "a Stream goes on behind a command whose caller left it on a connection that died",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestACallerWhoLeavesACommandThatMayHaveRunBreaksItsStreamAtOnce")},
		},
		{
			Name: "withdrawn-is-a-gap", File: "carry/settle.go",
			Old: "w.Broke = s != nil && r.maybe && r.Frames != 0 && r.broke()", New: "w.Broke = s != nil && r.broke()",
			Breaks: "a command withdrawn before it was sent breaks its Stream",
			Kill:   []Killer{by("fdengine", "TestACommandWithdrawnBeforeItWasSentIsNoFailureOfItsStream"), by("carry", "TestScriptsPrintWhatTheyPrintedBefore")},
		},
		{
			Name: "hold-forgets-what-ran-behind", File: cut,
			Old: "if s.torn || !s.due && s.gap() && l.ranBehind(s) {", New: "if s.torn {",
			Breaks: "a refused command goes again behind one of its Stream that may have run",
			Kill:   []Killer{by("fdengine", "TestACutWhileAStreamIsHeld"), by("carry", "TestScriptsPrintWhatTheyPrintedBefore")},
		},
		{
			Name: "hold-ignores-execution", File: stream,
			Old: "\tcase s.gap():\n\t\tl.breakHeld(s, f)\n", New: "",
			Breaks: "a refused command goes again behind one of its Stream that was answered",
			Kill:   []Killer{by("fdengine", "TestAStreamThatWentOnWithoutTheRefusedOneBreaks"), by("carry", "TestScriptsPrintWhatTheyPrintedBefore")},
		},
		{
			Name: "last-pause-counts", File: stream,
			Old: "s.after = max(s.after, due)", New: "s.after = due",
			Breaks: "a held Stream comes back before the time that one of its refusals named",
			Kill:   []Killer{by("fdengine", "TestTheLongestPauseOfAHeldStreamCounts")},
		},
		{
			Name: "held-queue-published", File: stream,
			Old: "\tl.extractQueued(s)\n\treturn true", New: "\treturn true",
			Breaks: "what waits behind a refused command of its Stream is sent before it",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestAStreamRefusedAsAWholeIsSentAgainInOrder")},
		},
		{
			Name: "broken-stream-accepts", File: "fdengine/submit.go",
			Old: "case s != nil && s.Broken():", New: "case s != nil && s.Broken() && s.Held():",
			Breaks: "a broken Stream takes commands before its Reset",
			Kill:   []Killer{by("fdengine", "TestACutWhileAStreamIsHeld", "TestAFailureBreaksItsStreamAndNobodyElse")},
		},
	}
}
