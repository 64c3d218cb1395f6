package mutants

// ofGroups breaks completions of many commands, and what recycles their blocks.
func ofGroups() []Mutant {
	const group, answer, submit, shelf, gather = "fdengine/group.go", "fdengine/answer.go", "fdengine/submit.go", "carry/shelf.go", "fdengine/gather.go"
	return []Mutant{
		{
			Name: "group-takes-anothers-lot", File: answer,
			Old: "if s.group != d {\n\t\t\ts.tellLot()\n", New: "if s.group != d {\n",
			Breaks: "outcomes of one group are counted for the next one in the chunk",
			Kill:   []Killer{by("fdengine", "TestGroupsThatAlternateAreCountedEachForItself")},
		},
		{
			Name: "group-hears-once-too-often", File: answer,
			Old: "s.lot, s.group, s.lotN = nil, nil, 0", New: "s.lot, s.lotN = nil, 0",
			Breaks: "the outcomes of a batch are counted for the group before it",
			Kill:   []Killer{by("fdengine", "TestGroupsThatAlternateAreCountedEachForItself")},
		},
		{
			Name: "group-forgets-errors", File: answer,
			Old: "\t\td.fail(err)\n", New: "",
			Breaks: "a group whose commands failed ends without an error",
			Kill:   []Killer{by("fdengine", "TestAGroupKeepsTheFirstErrorAndStartsAgainWithNone")},
		},
		{
			Name: "group-keeps-its-error", File: group,
			Old: "g.failed.Swap(nil)", New: "g.failed.Load()",
			Breaks: "the error of the last use is told again",
			Kill:   []Killer{by("fdengine", "TestAGroupKeepsTheFirstErrorAndStartsAgainWithNone")},
		},
		{
			Name: "group-believes-any-word", File: group,
			Old: "for g.open.Load() > 0 {", New: "if g.open.Load() > 0 {",
			Breaks: "a word that nobody took ends the next wait before its outcomes",
			Kill:   []Killer{by("fdengine", "TestAWaitForAGroupCanBeLeftAndTakenUpAgain")},
		},
		{
			Name: "group-that-nobody-made", File: submit,
			Old: "is && (g == nil || g.ready == nil)", New: "is && g != nil && g.ready == nil",
			Breaks: "a nil Group is counted for somebody else's batch",
			Kill:   []Killer{by("fdengine", "TestAGroupThatNobodyMadeIsRefused")},
		},
		{
			Name: "group-told-before-its-room", File: answer,
			Old: "s.e.log.Lead(&s.chunk) // who waits for it", New: "// who waits for it",
			Breaks: "who has waited for a group finds the queue full",
			Kill:   []Killer{by("fdengine", "TestWhoHasWaitedForAGroupFindsTheRoomOfItsCommands")},
		},
		{
			Name: "group-told-after-a-flush", File: answer,
			Old: "if s.lotN++; stream != nil {", New: "if s.lotN++; false {",
			Breaks: "a Flush returns before the completions",
			Kill:   []Killer{by("fdengine", "TestAFlushReturnsAfterTheGroupWasTold")},
		},
		{
			Name: "blocks-not-kept", File: shelf,
			Old: " || f.used+f.n+n <= f.most", New: "",
			Breaks: "a large window allocates its blocks anew with each burst",
			Kill:   []Killer{by("carry", "TestABurstUsesTheBlocksOfTheLastOne")},
		},
		{
			Name: "blocks-kept-for-ever", File: shelf,
			Old: "f.most -= int((int64(f.most-f.used)*part + easeSpan - 1) / easeSpan)", New: "_ = part",
			Breaks: "the memory of a burst stays as long as the engine is never idle",
			Kill:   []Killer{by("carry", "TestMemoryReturnsAfterABurst")},
		},
		{
			Name: "big-buffers-not-kept", File: "carry/block.go",
			Old: " && s.used+s.bytes+size > s.most", New: "",
			Breaks: "a large window of big requests allocates its buffers anew with each burst",
			Kill:   []Killer{by("carry", "TestABurstOfBigRequestsUsesTheBuffersOfTheLastOne")},
		},
		{
			Name: "big-buffers-counted-for-ever", File: "carry/block.go",
			Old: "\ts.used -= size\n", New: "",
			Breaks: "more and more buffers of big requests are kept",
			Kill:   []Killer{by("carry", "TestABurstOfBigRequestsUsesTheBuffersOfTheLastOne")},
		},
		{
			Name: "near-waits-for-all", File: gather,
			Old: "waits >= inFlight/nearPart", New: "waits >= inFlight",
			Breaks: "a server that answers in parts runs dry",
			Kill:   []Killer{by("fdengine", "TestAQuarterOfWhatIsInFlightWaitsForNothing")},
		},
	}
}
