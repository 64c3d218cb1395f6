package mutants

// ofParcels breaks requests that enter the queue together: DoBatch and SubmitBatch.
func ofParcels() []Mutant {
	const parcel, lot, stream = "fdengine/parcel.go", "fdengine/submitbatch.go", "fdengine/stream.go"
	return []Mutant{
		{
			Name: "parcel-takes-all-the-room", File: parcel,
			Old: "const partShare = 4", New: "const partShare = 1",
			Breaks: "a batch that is larger than the room waits until nothing is under way, again and again",
			Kill:   []Killer{by("fdengine", "TestABatchThatIsLargerThanTheRoomKeepsTheWindowFull")},
		},
		{
			Name: "parcel-throws-buffers-away", File: parcel,
			Old: "\t\t\tp.spare(l.Spare())\n", New: "",
			Breaks: "each big request of a batch allocates its buffer",
			Kill:   []Killer{by("redis", "TestAllocNothingPerDoAndSubmitWithAndWithoutLanes")},
		},
		{
			Name: "parcel-leaves-a-request-behind", File: parcel,
			Old: "\t\td.enc = append(p.room(), d.enc...)\n", New: "",
			Breaks: "a small request behind a big one lies in a buffer that the next big one is encoded into",
			Kill:   []Killer{by("fdengine", "TestBigRequestsOfSubmittedBatchesArriveAsTheyWere")},
		},
		{
			Name: "parcel-larger-than-room", File: parcel,
			Old: "from == 0 && len(p.recs) <= cmds && p.size <= bytes", New: "from == 0",
			Breaks: "a batch larger than the limits is let in as a whole",
			Kill:   []Killer{by("fdengine", "TestASubmittedBatchStaysWithinTheLimits"), by("fdengine", "TestABatchStaysWithinTheByteLimit")},
		},
		{
			Name: "parcel-part-too-large", File: parcel,
			Old: " && size+len(p.encs[to]) <= bytes", New: "",
			Breaks: "a part of a batch is larger than the limit in bytes",
			Kill:   []Killer{by("fdengine", "TestASubmittedBatchStaysWithinTheLimits"), by("fdengine", "TestABatchStaysWithinTheByteLimit")},
		},
		{
			Name: "parcel-takes-no-turn", File: parcel,
			Old: "e.room.first != nil || !e.fits(to-from, size)", New: "!e.fits(to-from, size)",
			Breaks: "a batch overtakes who waits for room",
			Kill:   []Killer{by("fdengine", "TestASubmittedBatchWaitsBehindWhoCameBefore")},
		},
		{
			Name: "parcel-waits-for-no-room", File: parcel,
			Old: "if err := e.makeRoom(ctx, p.stream, to-from, size); err != nil {", New: "if err := ctx.Err(); err != nil {",
			Breaks: "a batch enters a full queue",
			Kill:   []Killer{by("fdengine", "TestASubmittedBatchWaitsForRoomAsLongAsItsContext")},
		},
		{
			Name: "parcel-keeps-a-bad-record", File: parcel,
			Old: "\t\t*rec = carry.Record[entry]{}\n\t\tp.recs = p.recs[:n]\n", New: "",
			Breaks: "a command that could not be prepared enters without a request",
			Kill:   []Killer{by("fdengine", "TestEachCommandOfABatchStandsAlone"), by("fdengine", "TestASubmittedBatchStopsAtTheCommandThatCannotBeQueuedAndGoesOnBehindIt")},
		},
		{
			Name: "parcel-forgets-the-deadline", File: parcel,
			Old: "r.SettleBy = p.until", New: "r.SettleBy = 0",
			Breaks: "the deadline of a submitter's ctx is not one of its batch",
			Kill:   []Killer{by("fdengine", "TestTheCommandsOfASubmittedBatchSettleByTheDeadlineOfItsContextOrTheirOwn")},
		},
		{
			Name: "parcel-forgets-the-timeout", File: parcel,
			Old: "rec.SettleBy = int64(d.spec.Timeout)", New: "rec.SettleBy = 0",
			Breaks: "commands of batches have no timeout of their own",
			Kill:   []Killer{by("fdengine", "TestTheCommandsOfASubmittedBatchSettleByTheDeadlineOfItsContextOrTheirOwn")},
		},
		{
			Name: "parcel-outside-its-stream", File: parcel,
			Old: "rec.Owner, rec.Stream = entry{cmd, done}, p.stream", New: "rec.Owner = entry{cmd, done}",
			Breaks: "a batch in a stream is not part of it",
			Kill:   []Killer{by("fdengine", "TestABatchInAStreamIsPartOfIt")},
		},
		{
			Name: "parcel-into-a-broken-stream", File: parcel,
			Old: "e.refuses(p.stream)", New: "e.refuses(nil)",
			Breaks: "a broken stream takes a batch",
			Kill:   []Killer{by("fdengine", "TestABatchInAStreamIsPartOfIt")},
		},
		{
			Name: "lot-goes-on-behind-a-failure", File: lot,
			Old: "i < len(cmds) && err == nil && !p.full()", New: "i < len(cmds) && !p.full()",
			Breaks: "SubmitBatch passes over a command that cannot be queued",
			Kill:   []Killer{by("fdengine", "TestASubmittedBatchStopsAtTheCommandThatCannotBeQueuedAndGoesOnBehindIt")},
		},
		{
			Name: "lot-blames-the-wrong-command", File: lot,
			Old: "if refused != nil {", New: "if refused != nil && err == nil {",
			Breaks: "the error of SubmitBatch is not that of the first command that was not queued",
			Kill:   []Killer{by("fdengine", "TestASubmittedBatchWaitsForRoomAsLongAsItsContext")},
		},
		{
			Name: "lot-keeps-its-stream-open", File: lot,
			Old: "defer func() { s.leave(len(cmds) - n) }()", New: "",
			Breaks: "a Flush waits for commands that were not queued",
			Kill:   []Killer{by("fdengine", "TestABatchInAStreamIsPartOfIt")},
		},
		{
			Name: "lot-is-one-command-of-its-stream", File: stream,
			Old: "s.mu.open += n", New: "s.mu.open++",
			Breaks: "a Flush returns before the answers of a batch",
			Kill:   []Killer{by("fdengine", "TestABatchInAStreamIsPartOfIt")},
		},
	}
}
