package mutants

// ofSpans breaks claims and writes of several big blocks.
func ofSpans() []Mutant {
	const span, direct, call = "carry/span.go", "pool/direct.go", "pool/direct_call.go"
	const limits, cut = "TestBigBlocksThatFollowEachOtherAreOneSpanAsFarAsLimitsAllow", "TestACutAtAnyByteOfALongSpanChargesWhatHadLeft"
	return []Mutant{
		{
			Name: "span-of-one-block", File: span,
			Old: "for len(s.more) < min(maxCmds, spanBlocks)", New: "for len(s.more) < 0",
			Breaks: "each big request costs a write",
			Kill:   []Killer{by("carry", limits), by("fdengine", "TestBigRequestsShareWritesOfUpTo256KiB")},
		},
		{
			Name: "span-beyond-the-window", File: span,
			Old: "min(maxCmds, spanBlocks)", New: "spanBlocks",
			Breaks: "more commands are under way than the window allows",
			Kill:   []Killer{by("carry", limits)},
		},
		{
			Name: "span-beyond-the-bytes", File: span,
			Old: " || s.Size+len(b.buf) > maxBytes", New: "",
			Breaks: "more bytes are under way than the window allows, or in one claim",
			Kill:   []Killer{by("carry", limits)},
		},
		{
			Name: "span-with-quiet-ones", File: span,
			Old: " || b.quiet > 0", New: "",
			Breaks: "a command without reply inside a long span is not told",
			Kill:   []Killer{by("carry", "TestWhatExpectsNoReplyIsNoPartOfALongSpan")},
		},
		{
			Name: "span-leaves-no-mark", File: span,
			Old: "\t\tl.cur.passed = true\n", New: "",
			Breaks: "a caller who leaves a command in flight is told that it was not sent",
			Kill:   []Killer{by("carry", limits)},
		},
		{
			Name: "span-cut-by-its-first-block", File: span,
			Old: "\t\tend += len(b)\n", New: "\t\t_ = b\n",
			Breaks: "a command that had not left is taken for one that may have run",
			Kill:   []Killer{by("carry", cut), by("carry", "TestOnlyWhatHadLeftOfALongSpanMayHaveRun")},
		},
		{
			Name: "span-cut-one-off", File: span,
			Old: "behind := i + 1 - s.from", New: "behind := i + 2 - s.from",
			Breaks: "a command that may have run is sent again as if it had not left",
			Kill:   []Killer{by("carry", cut), by("carry", "TestOnlyWhatHadLeftOfALongSpanMayHaveRun")},
		},
		{
			Name: "span-reaches-what-is-answered", File: "carry/log.go",
			Old: " && l.answered < s.from+uint64(s.Commands)", New: "",
			Breaks: "an older span counts as the one the oldest command is in",
			Kill:   []Killer{by("carry", "TestReachesFindsTheOldestRecordInFlightOverTheEndOfABlock")},
		},
		{
			Name: "span-is-due-when-it-is-out", File: "fdengine/writer.go",
			Old: " && !l.Left(span, s.passed) && l.Left(span, n)", New: " && n == span.Size",
			Breaks: "the reply to a request that has left is not due before all that goes out with it has left",
			Kill:   []Killer{by("fdengine", "TestAReplyIsDueThoughTheRestOfItsSpanHasNotLeft")},
		},
		{
			Name: "parts-uncounted", File: direct,
			Old: "\tt.n += n\n\tfor", New: "\tfor",
			Breaks: "nobody knows how much of a write has left",
			Kill:   []Killer{by("pool", "TestTriedPartsAreAllTakenWhenThereIsRoom")},
		},
		{
			Name: "parts-left-behind", File: direct,
			Old: "\td.out.more = more\n\treturn d.out.run(b, d.once)", New: "\treturn d.out.run(b, d.once)",
			Breaks: "the reader's write sends only the first part",
			Kill:   []Killer{by("pool", "TestTriedPartsAreAllTakenWhenThereIsRoom")},
		},
		{
			Name: "parts-cut-short", File: call,
			Old: "v.iov[k].SetLen(min(len(next), sendMax))", New: "v.iov[k].SetLen(min(len(next), 1000))",
			Breaks: "bytes in the middle of a span are left out",
			Kill:   []Killer{by("pool", "TestPartsArriveOneBehindTheOther")},
		},
	}
}
