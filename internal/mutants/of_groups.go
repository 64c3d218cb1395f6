package mutants

// ofGroups breaks completions of many commands, and what recycles their blocks.
func ofGroups() []Mutant {
	const group, answer, block, log, gather = "fdengine/group.go", "fdengine/answer.go", "carry/block.go", "carry/log.go", "fdengine/gather.go"
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
			Name: "blocks-not-kept", File: block,
			Old: " || l.used+n < l.most", New: "",
			Breaks: "a large window allocates its blocks anew with each burst",
			Kill:   []Killer{by("carry", "TestABurstUsesTheBlocksOfTheLastOne")},
		},
		{
			Name: "blocks-kept-for-ever", File: log,
			Old: "l.most -= (l.most - l.used + easeTicks - 1) / easeTicks", New: "",
			Breaks: "the memory of a burst stays as long as the engine is never idle",
			Kill:   []Killer{by("carry", "TestMemoryReturnsAfterABurst")},
		},
		{
			Name: "blocks-kept-when-wide", File: block,
			Old: " || len(l.free.mem) > 2*mem)", New: ")",
			Breaks: "small requests lie in blocks that were made for large ones, a quarter full",
			Kill:   []Killer{by("carry", "TestBlocksHaveRoomForAsManyRecordsAsRequestsFit")},
		},
		{
			Name: "near-waits-for-all", File: gather,
			Old: "waits >= inFlight/nearPart", New: "waits >= inFlight",
			Breaks: "a server that answers in parts runs dry",
			Kill:   []Killer{by("fdengine", "TestAQuarterOfWhatIsInFlightWaitsForNothing")},
		},
	}
}
