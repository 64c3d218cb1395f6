package mutants

// ofRecords breaks what package carry decides about single records: when a connection died, when a caller leaves,
// when the log gives room back.
func ofRecords() []Mutant {
	const cut, log, record, settle, away = "carry/cut.go", "carry/log.go", "carry/record.go", "carry/settle.go", "carry/away.go"
	return []Mutant{
		{
			Name: "maybe-bit-dropped", File: cut,
			Old: "r.maybe = true\n\t\t\tleft = true", New: "left = true",
			Breaks: "a command whose last byte was accepted is called NotSent",
			Kill:   []Killer{by("carry", "TestCutDecidesEachCombinationByTheFirstRowThatFits"), by("fdengine", "TestTheCommandOfACallerWhoLeftIsNeverSentAgain", "TestOfAMixedTailOnlyWhatMayGoAgainGoesAgain")},
		},
		{
			Name: "unsent-charged", File: cut,
			Old: "\t\tif gone {\n\t\t\tr.sends++", New: "\t\tif gone || true {\n\t\t\tr.sends++",
			Breaks: "a command that did not leave is charged a send and may have run",
			Kill:   []Killer{by("carry", "TestCutDecidesEachCombinationByTheFirstRowThatFits"), by("fdengine", "TestACommandCutOneByteShortIsNotSent")},
		},
		{
			Name: "noretry-replayed-after-cut", File: cut,
			Old: "case r.Class == NoRetry:", New: "case r.Class == NoRetry && r.Budget == 0:",
			Breaks: "a NoRetry command that may have run is sent again",
			Kill:   []Killer{by("carry", "TestCutDecidesEachCombinationByTheFirstRowThatFits"), by("fdengine", "TestOfAMixedTailOnlyWhatMayGoAgainGoesAgain")},
		},
		{
			Name: "expired-replayed", File: cut,
			Old: "case r.SettleBy != 0 && r.SettleBy <= d.Now:", New: "case r.SettleBy != 0 && r.SettleBy < d.Now-1e12:",
			Breaks: "a command past its settle-by time is sent again after a cut",
			Kill:   []Killer{by("carry", "TestCutDecidesEachCombinationByTheFirstRowThatFits")},
		},
		{
			Name: "budget-one-short", File: record,
			Old: "return r.sends > r.Budget", New: "return r.sends >= r.Budget",
			Breaks: "a budget of n allows n-1 re-sends",
			Kill:   []Killer{by("carry", "TestCutDecidesEachCombinationByTheFirstRowThatFits"), by("fdengine", "TestProgressOfOthersDoesNotRefillABudget")},
		},
		{
			Name: "budget-per-session", File: cut,
			Old: "\t\t\t\trepeats++\n", New: "\t\t\t\trepeats++\n\t\t\t\tr.sends = 0\n",
			Breaks: "the budget starts anew with each connection",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestProgressOfOthersDoesNotRefillABudget")},
		},
		{
			Name: "poison-not-told", File: cut,
			Old: "case r.Spent() && d.Alone:", New: "case r.Spent() && d.Alone && d.Strict:",
			Breaks: "a command that killed each connection it was alone on is not called poisoned",
			Kill:   []Killer{by("carry", "TestCutDecidesEachCombinationByTheFirstRowThatFits"), by("fdengine", "TestAPoisonCommandBurnsNobodyElsesBudget")},
		},
		{
			Name: "strict-order-ignored", File: cut,
			Old: "strict = d.Strict", New: "strict = strict && d.Strict",
			Breaks: "StrictOrder lets what was published behind a failure go again",
			Kill:   []Killer{by("fdengine", "TestStrictOrderFailsEverythingPublishedBehindAFailure"), by("carry", "TestScriptsPrintWhatTheyPrintedBefore")},
		},
		{
			Name: "settled-twice", File: record,
			Old: "r.ticket.seq == r.seq) && r.move(pending, settled)", New: "r.ticket.seq == r.seq) && (r.move(pending, settled) || r.state() == settled)",
			Breaks: "a record that is settled is settled once more",
			Kill:   []Killer{by("carry", "TestARecordWithoutReplyThatTheReaderDeliveredIsNotSentByTheWriterOnceMore", "TestRandomProgramsEndAsTheModelSays"), by("fdengine", "TestModel")},
		},
		{
			Name: "stranger-settled", File: record,
			Old: "return (r.ticket == nil || r.ticket.seq == r.seq) && r.move(", New: "return r.move(",
			Breaks: "an old record settles the command that uses its ticket now",
			Kill:   []Killer{by("carry", "TestARecordWhoseTicketWasAttachedAgainIsNotTakenForTheNewOne", "TestARecordWithoutReplyThatTheReaderDeliveredIsNotSentByTheWriterOnceMore")},
		},
		{
			Name: "no-tombstone", File: settle,
			Old: "\tl.bury(b) // may move r\n", New: "",
			Breaks: "a command withdrawn before it was sent is sent all the same",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestANotSentCancelIsNeverExecuted")},
		},
		{
			Name: "ghost-called-notsent", File: settle,
			Old: "e := r.end(WhyAsked, published)", New: "e := r.end(WhyAsked, published && r.maybe)",
			Breaks: "a caller who leaves a command on the wire is told NotSent",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestANotSentCancelIsNeverExecuted")},
		},
		{
			Name: "refusal-charged", File: record,
			Old: "\tif ran {\n\t\tr.sends++", New: "\tif ran || r.Class == Replay {\n\t\tr.sends++",
			Breaks: "a send that was refused is charged to the budget",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestARefusalDoesNotTakeBackAnEarlierSend", "TestRefusalsAreBounded")},
		},
		{
			Name: "doubtful-refusal-free", File: record,
			Old: "\tif ran {\n\t\tr.sends++", New: "\tif ran && r.Frames == 0 {\n\t\tr.sends++",
			Breaks: "a refusal that may have run is free of the budget",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestARefusalThatMayHaveRunIsChargedAndForReplayOnly")},
		},
		{
			Name: "window-counts-commands-only", File: log,
			Old: "if int(r.off)-start+int(r.size) > maxBytes && !(to == from && l.inFlight == 0) {", New: "if maxBytes < 0 && !(to == from && l.inFlight == 0) {",
			Breaks: "the window has no limit in bytes",
			Kill:   []Killer{by("fdengine", "TestTheWindowHoldsInCommandsAndInBytes", "TestAClaimIsBoundedAndABigValueGoesAlone"), by("carry", "TestScriptsPrintWhatTheyPrintedBefore")},
		},
		{
			Name: "block-recycled-under-the-writer", File: log,
			Old: "\tl.busy = b\n", New: "",
			Breaks: "a block is given back while the writer writes from it",
			Kill:   []Killer{by("carry", "TestABlockThatIsBeingWrittenIsNotGivenToOthers")},
		},
		{
			Name: "dead-never-dropped", File: log,
			Old: "\t\tif b.dead > 0 {\n\t\t\tl.drop(b, l.pub)\n\t\t}\n\t\tif l.pub < b.n {", New: "\t\tif l.pub < b.n {",
			Breaks: "what died while it waited is written",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestANotSentCancelIsNeverExecuted")},
		},
		{
			Name: "evict-wrong-side", File: away,
			Old: "if published || r.Stream != nil || !r.live() {", New: "if !published || r.Stream != nil || !r.live() {",
			Breaks: "what is on the wire goes to another engine, and what is not stays",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestAfterACutAllThatIsStillToBeSentGoesToTheRerouterInOrder")},
		},
		{
			Name: "replay-order-reversed", File: "carry/splice.go",
			Old: "w := &ws[i]", New: "w := &ws[len(ws)-1-i]",
			Breaks: "what comes back comes back in the wrong order",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore"), by("fdengine", "TestAStreamRefusedAsAWholeIsSentAgainInOrder")},
		},
		{
			Name: "due-order-ignored", File: away,
			Old: "return a.due < b.due ||", New: "return a.due > b.due ||",
			Breaks: "those that wait come back last first",
			Kill:   []Killer{by("carry", "TestScriptsPrintWhatTheyPrintedBefore", "TestRandomProgramsEndAsTheModelSays"), by("fdengine", "TestALoadingStormDoesNotStallAHealthyCommand")},
		},
	}
}
