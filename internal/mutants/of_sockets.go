package mutants

// ofSockets breaks how bytes come and go: the socket, and the buffers that requests are encoded into.
func ofSockets() []Mutant {
	const direct, trickle, draft = "pool/direct.go", "fdengine/trickle.go", "fdengine/draft.go"
	return []Mutant{
		{
			Name: "part-of-a-write-forgotten", File: direct,
			Old: "\treturn t.n, err\n", New: "\tif err != nil {\n\t\treturn 0, err\n\t}\n\treturn t.n, nil\n",
			Breaks: "what the kernel accepted before a deadline is called not sent",
			Kill:   []Killer{by("pool", "TestAWriteThatItsDeadlineEndsSaysHowMuchTheKernelTook")},
		},
		{
			Name: "gathering-without-a-look", File: direct,
			Old: "\t\tif !d.look.at(fd) {\n", New: "\t\tif true {\n",
			Breaks: "the end of a stream that came before the reader began to wait is not seen",
			Kill:   []Killer{by("pool", "TestWhatEndsAWaitForSeveralBytes")},
		},
		{
			Name: "two-writers-in-one-state", File: direct,
			Old: "\td.out.Lock()\n\tdefer d.out.Unlock()\n\treturn d.out.run(b, d.sock.Write)", New: "\td.out.TryLock()\n\tdefer d.out.Unlock()\n\treturn d.out.run(b, d.sock.Write)",
			Breaks: "two goroutines that write to one connection tear each other's bytes",
			Kill:   []Killer{by("pool", "TestNoWriteIsTornByATriedOneNorTearsIt")},
		},
		{
			Name: "put-while-gathering", File: "pool/put.go",
			Old: "\tc.Gather(1)\n", New: "",
			Breaks: "the next holder of a connection waits for bytes that do not come",
			Kill:   []Killer{by("pool", "TestPutReturnsToReadsThatWaitForAnything")},
		},
		{
			Name: "waits-for-what-does-not-come", File: "fdengine/sweeper.go",
			Old: "\t\tlower = s.dried(now)\n", New: "\t\t_ = s.dried\n",
			Breaks: "replies that have arrived are held back until a slow command behind them is done",
			Kill:   []Killer{by("fdengine", "TestNoReplyWaitsForOneThatDoesNotCome")},
		},
		{
			Name: "every-reply-by-itself", File: trickle,
			Old: "\treturn s.low != s.told\n", New: "\treturn false\n",
			Breaks: "a server that writes each reply by itself makes the reader read each by itself",
			Kill:   []Killer{by("fdengine", "TestRepliesThatTrickleAreReadSeveralAtATime")},
		},
		{
			Name: "buffer-of-a-caller", File: draft,
			Old: "&& unsafe.SliceData(d.base) != unsafe.SliceData(d.enc) {", New: "&& unsafe.SliceData(d.base) == nil {",
			Breaks: "the engine writes into memory that belongs to a command",
			Kill:   []Killer{by("fdengine", "TestABufferOfTheEncodersOwnIsNeverWrittenTo", "TestARequestThatBeginsInsideTheBufferIsSentWhole")},
		},
		{
			Name: "buffers-kept-for-ever", File: "fdengine/sweeper.go",
			Old: "\t\t\t\tl.Shed()\n", New: "",
			Breaks: "an idle client keeps the memory of a burst of big requests",
			Kill:   []Killer{by("fdengine", "TestBuffersOfBigRequestsAreLetGoAfterASecondOfIdleness")},
		},
		{
			Name: "reader-behind-a-stuck-chain", File: "fdengine/turn.go",
			Old: "\tif at != 0 && now-at >= int64(tick) && !s.comesOn {\n", New: "\tif at != 0 && now < 0 && !s.comesOn {\n",
			Breaks: "nobody reads while one caller, who is to wake the next, does not get a CPU",
			Kill:   []Killer{by("fdengine", "TestHowLongAReaderWaitsForAChain")},
		},
		{
			Name: "one-chain-stands-for-all", File: "fdengine/chain.go",
			Old: "s.running.Add(1)", New: "s.running.Store(1)",
			Breaks: "the writer is woken while callers are still waking each other",
			Kill:   []Killer{by("fdengine", "TestNobodyWaitsForSeveralChains")},
		},
		{
			Name: "buffer-still-in-the-log", File: draft,
			Old: "\tcase d.kept:\n", New: "\tcase d.kept && d.rec == nil:\n",
			Breaks: "a request is overwritten while it may still have to be sent",
			Kill:   []Killer{by("fdengine", "TestBigRequestsArriveAsTheyWereEachTimeTheyAreSent")},
		},
	}
}
