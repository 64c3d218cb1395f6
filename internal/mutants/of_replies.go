package mutants

// ofReplies breaks what the reader does with what arrives.
func ofReplies() []Mutant {
	const answer, reader = "fdengine/answer.go", "fdengine/reader.go"
	return []Mutant{
		{
			Name: "decoded-without-winning", File: answer,
			Old: "if !rec.Decide() {", New: "if !rec.Decide() && refused {",
			Breaks: "the reply of a caller who left is decoded into his command",
			Kill:   []Killer{by("fdengine", "TestAReplyOfACallerWhoLeftReachesNobody")},
		},
		{
			Name: "acked-before-decode", File: answer,
			Old: "err := rec.Owner.cmd.DecodeReply(", New: "s.advance(false)\n\terr := rec.Owner.cmd.DecodeReply(",
			Breaks: "the position moves before the decoder has run",
			Kill:   []Killer{by("fdengine", "TestManyCallersShareOneConnectionAndEachGetsItsOwnReply")},
		},
		{
			Name: "refusal-hides-an-earlier-send", File: answer,
			Old: "\tif refused && maybe {\n\t\treturn &CallError{Fate: carry.MaybeExecuted", New: "\tif refused && maybe && sends > 1000 {\n\t\treturn &CallError{Fate: carry.MaybeExecuted",
			Breaks: "the refusal of the last send makes an earlier one unsent",
			Kill:   []Killer{by("fdengine", "TestARefusalDoesNotTakeBackAnEarlierSend")},
		},
		{
			Name: "noretry-sent-after-doubtful-refusal", File: answer,
			Old: "case ran && (rec.Class == carry.NoRetry || rec.Charged()+1 > int(rec.Budget)):", New: "case ran && rec.Charged()+1 > int(rec.Budget):",
			Breaks: "a NoRetry command goes again after a refusal that leaves open whether it ran",
			Kill:   []Killer{by("fdengine", "TestARefusalThatMayHaveRunIsChargedAndForReplayOnly")},
		},
		{
			Name: "doubtful-refusal-unbounded", File: answer,
			Old: "rec.Class == carry.NoRetry || rec.Charged()+1 > int(rec.Budget)):", New: "rec.Class == carry.NoRetry || rec.Charged() > int(rec.Budget)):",
			Breaks: "a refusal that may have run is sent again once more than the budget allows",
			Kill:   []Killer{by("fdengine", "TestARefusalThatMayHaveRunIsChargedAndForReplayOnly")},
		},
		{
			Name: "opaque-ignored", File: answer,
			Old: "ran := v.Ran != RanNo || rec.Opaque", New: "ran := v.Ran != RanNo",
			Breaks: "a script's own words are taken for proof that it did not run",
			Kill:   []Killer{by("redis", "TestAScriptThatAnswersInTheWordsOfARefusalRunsOnce")},
		},
		{
			Name: "refusals-one-more", File: answer,
			Old: "rec.Refusals() >= e.opt.MaxRefusals", New: "rec.Refusals() > e.opt.MaxRefusals",
			Breaks: "one refusal more than MaxRefusals is sent again",
			Kill:   []Killer{by("fdengine", "TestRefusalsAreBounded")},
		},
		{
			Name: "servers-word-ignored", File: answer,
			Old: "wait := min(v.After, maxAfter)", New: "wait := min(v.After, 0)",
			Breaks: "the server's own word on when to come back is not heard",
			Kill:   []Killer{by("fdengine", "TestThePauseBetweenRefusalsGrowsAndTheServersWordComesFirst")},
		},
		{
			Name: "refusal-pause-not-growing", File: answer,
			Old: "if n < 30 && low<<n < high {", New: "if d = low; n < 0 {",
			Breaks: "the pause between refusals does not grow",
			Kill:   []Killer{by("fdengine", "TestThePauseBetweenRefusalsGrowsAndTheServersWordComesFirst")},
		},
		{
			Name: "own-verdict-ignored", File: answer,
			Old: "if rec.Judge {\n\t\t\tv =", New: "if rec.Judge && !refused {\n\t\t\tv =",
			Breaks: "the protocol judges a reply whose command brings its own verdict",
			Kill:   []Killer{by("fdengine", "TestAVerdictOfACommandComesBeforeTheProtocols")},
		},
		{
			Name: "retire-ignored", File: answer,
			Old: "\tcase Retire:\n\t\ts.retire(errRefusedHere)\n", New: "",
			Breaks: "a connection to a server that is no primary any more is kept",
			Kill:   []Killer{by("fdengine", "TestAREADONLYRetiresTheConnectionOnceAndInnocentsGetTheirReplies")},
		},
		{
			Name: "push-over-limit-buffered", File: reader,
			Old: "case kind == KindPush && max(n, need) > s.e.opt.MaxReply:", New: "case kind == KindPush && n < 0:",
			Breaks: "a push beyond MaxReply is buffered",
			Kill:   []Killer{by("fdengine", "TestAPushBeyondTheLimitCutsTheConnectionAndIsChargedToNobody")},
		},
		{
			Name: "push-taken-for-reply", File: reader,
			Old: "case kind == KindPush:", New: "case kind == KindPush && s.e.opt.OnPush != nil:",
			Breaks: "a push is paired with a command",
			Kill:   []Killer{by("fdengine", "TestAPushWithoutAHandlerIsDropped", "TestPushesAreNeverPairedWithACommand")},
		},
		{
			Name: "surplus-reply-ignored", File: reader,
			Old: "if rec == nil {\n\t\t\treturn errSurplus\n", New: "if rec == nil {\n\t\t\ts.r += n\n\t\t\tcontinue\n",
			Breaks: "a reply that nobody asked for is passed over, and the next one may be a stranger's",
			Kill:   []Killer{by("fdengine", "TestAReplyNobodyAskedForCutsTheConnection")},
		},
		{
			Name: "frame-limit-ignored", File: reader,
			Old: "case kind != KindPush && (n == 0", New: "case need < 0 && (n == 0",
			Breaks: "a reply beyond MaxReply is buffered",
			Kill:   []Killer{by("fdengine", "TestAReplyBeyondTheLimitIsAnAnswerAndACut")},
		},
		{
			Name: "skipped-frame-leaks", File: reader,
			Old: "\t\t\ts.skipped = s.have\n", New: "",
			Breaks: "the reply of a prefix is given to the command",
			Kill:   []Killer{by("fdengine", "TestARecordOfSeveralFramesIsOne", "TestARedirectIsFollowedAndAnASKCarriesItsPrefix")},
		},
		{
			Name: "decode-panic-keeps-connection", File: reader,
			Old: "\t\ts.retire(p)\n", New: "",
			Breaks: "a connection whose decoder panicked is used again",
			Kill:   []Killer{by("fdengine", "TestADecoderThatFailsCostsOneCommandAndRetiresTheConnection")},
		},
		{
			Name: "decode-panic-hides-an-earlier-send", File: reader,
			Old: "fate = carry.MaybeExecuted // a refusal of the last send takes no earlier one back", New: "_ = fate",
			Breaks: "a panic in the decoder of a refusal makes an earlier send unsent",
			Kill:   []Killer{by("fdengine", "TestADecoderThatFailsOnARefusalTakesNoEarlierSendBack")},
		},
		{
			Name: "held-refusal-loses-its-caller", File: "fdengine/conclude.go",
			Old: "answer = replyError(err, true, x.Fate == carry.MaybeExecuted, x.Sends) // runs methods of the error", New: "answer = err",
			Breaks: "the fate of an error that panics is asked outside of all borders, and its caller waits for good",
			Kill:   []Killer{by("fdengine", "TestAHeldRefusalWhoseDecodeErrorPanicsStillReachesItsCaller")},
		},
		{
			Name: "goexit-kills-the-reader", File: "fdengine/engine.go",
			Old: "\t\t\tif !returned {\n", New: "\t\t\tif !returned && e.stopping {\n",
			Breaks: "a Goexit in a completion ends the reader for good",
			Kill:   []Killer{by("fdengine", "TestACompletionThatFailsAfterAReplyChangesNoOutcome")},
		},
		{
			Name: "observer-escapes", File: "fdengine/observe.go",
			Old: `panics.Guard("Observer", e.exited, func() error { e.opt.Observer.Observe(ev); return nil })`, New: "func() error { e.opt.Observer.Observe(ev); return nil }()",
			Breaks: "a panic of the observer ends the program",
			Kill:   []Killer{by("fdengine", "TestAnObserverThatFailsIsHarmless")},
		},
	}
}
