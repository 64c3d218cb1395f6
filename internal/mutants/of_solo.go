package mutants

// ofSolo breaks the lone caller, who writes and reads for itself.
func ofSolo() []Mutant {
	const solo, reader = "fdengine/solo.go", "fdengine/reader.go"
	return []Mutant{
		{
			Name: "lone-caller-serves-others", File: reader,
			Old: "\t\tif s.byCaller { // its only reply\n\t\t\ts.served = true\n\t\t\treturn nil\n\t\t}\n", New: "\t\ts.served = s.byCaller\n",
			Breaks: "a lone caller decodes the replies of others",
			Kill:   []Killer{by("fdengine", "TestWhoJoinsWhileTheLoneReplyIsOnItsWayIsAnsweredBehindIt")},
		},
		{
			Name: "gone-caller-in-the-chain", File: "fdengine/answer.go",
			Old: "if d.solo {", New: "if d.solo && s.lost {",
			Breaks: "a caller whose goroutine was ended by its decoder is to wake the next one",
			Kill:   []Killer{by("fdengine", "TestADecoderThatFailsInALoneCallCostsNobodyElse")},
		},
		{
			Name: "writer-beside-a-lone-caller", File: "fdengine/writer.go",
			Old: "\t\tif s.inline {\n\t\t\te.await(true)\n\t\t\tcontinue\n\t\t}\n", New: "",
			Breaks: "two write to one connection at a time",
			Kill:   []Killer{by("fdengine", "TestNobodyWritesWhileALoneCallerIsHeldUpInItsWrite")},
		},
		{
			Name: "nobody-reads-during-a-lone-write", File: solo,
			Old: "if s.inline && !s.helped {", New: "if s.inline && s.helped {",
			Breaks: "a server that answers before it has read all, and a lone caller, wait for each other",
			Kill:   []Killer{by("fdengine", "TestRepliesAreReadWhileALoneCallerIsBlockedInItsWrite")},
		},
		{
			Name: "session-over-during-a-lone-write", File: solo,
			Old: "\tif s.awaited {\n\t\t<-s.resume\n\t}\n\tclose", New: "\tclose",
			Breaks: "a command is sent again while its first send is still under way",
			Kill:   []Killer{by("fdengine", "TestASessionIsNotOverWhileALoneCallerStillWrites")},
		},
		{
			Name: "lone-write-that-fell-is-forgotten", File: solo,
			Old: "s.inline, s.written, s.assumed = false, s.span.Size, true", New: "s.inline = false",
			Breaks: "what a lone caller wrote before its goroutine ended is called not sent",
			Kill:   []Killer{by("fdengine", "TestForeignCodeThatFailsInALoneCallCutsTheConnectionAndHurtsNobodyElse")},
		},
		{
			Name: "sweeper-sleeps-while-nobody-reads", File: solo,
			Old: "s.vacantAt = e.rouse() // the", New: "s.vacantAt = e.clock.Load() // the",
			Breaks: "the end of an idle connection is noticed late behind a slow lone call",
			Kill:   []Killer{by("fdengine", "TestWhatTheServerDoesBehindALonePhaseIsNoticedWithinTwoTicks")},
		},
		{
			Name: "lone-caller-does-not-look", File: solo,
			Old: "if now, _ := s.conn.Readable(); !now {", New: "if now, _ := s.conn.Readable(); now || !now {",
			Breaks: "what the server said while nobody read is the answer to the next lone command",
			Kill:   []Killer{by("fdengine", "TestWhatTheServerSaysWhileNobodyReadsIsNotTheAnswerToTheNextLoneCommand")},
		},
		{
			Name: "no-look-before-the-put", File: "fdengine/session.go",
			Old: "\t\tat = time.Now().Add(tick)\n", New: "",
			Breaks: "a connection is put back with bytes that came while nobody read",
			Kill:   []Killer{by("fdengine", "TestWhatCameWhileNobodyReadDecidesWhetherTheConnectionIsPut")},
		},
	}
}
