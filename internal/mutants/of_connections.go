package mutants

// ofConnections breaks package pool.
func ofConnections() []Mutant {
	const lease, put, establish = "pool/lease.go", "pool/put.go", "pool/establish.go"
	return []Mutant{
		{
			Name: "removed-is-lent-again", File: put,
			Old: "p.discard(c, reasonOf(why), why)", New: "p.shelve(c, time.Now())",
			Breaks: "a removed connection is lent to the next",
			Kill:   []Killer{by("pool", "TestPutKeepsAConnectionAndRemoveNeverLendsItAgain")},
		},
		{
			Name: "returned-twice", File: put,
			Old: "if c == nil || c.owner != p || c.returned {", New: "if c == nil || c.owner != p {",
			Breaks: "a connection given back twice is lent to two holders",
			Kill:   []Killer{by("pool", "TestReturningALoanTwiceIsIgnored")},
		},
		{
			Name: "onput-error-ignored", File: put,
			Old: "return ReasonOnPut, err, true", New: "_ = err",
			Breaks: "a connection is kept although its OnPut hook failed",
			Kill:   []Killer{by("pool", "TestAPanicGoexitOrErrorInOnPutRemovesTheConnection")},
		},
		{
			Name: "unread-bytes-kept", File: put,
			Old: "if len(c.Unread) > 0 {", New: "if len(c.Unread) > 1<<20 {",
			Breaks: "a connection with unparsed bytes is lent",
			Kill:   []Killer{by("pool", "TestUnparsedBytesKeepAConnectionFromBeingLent")},
		},
		{
			Name: "fence-skipped", File: "pool/fence.go",
			Old: "if why == nil || c.Session == nil ||", New: "if why == nil || c.Session != nil ||",
			Breaks: "a session that timed out goes on running what it received",
			Kill:   []Killer{by("pool", "TestTheCauseOfARemoveDecidesOnTheFence"), by("redis", "TestTheNextSessionKillsTheOneThatTimedOutBeforeAnythingIsReplayed")},
		},
		{
			Name: "fence-lost-with-a-failed-dial", File: establish,
			Old: "d.Fence, last = p.pendingFences()\n", New: "d.Fence, last = p.pendingFences()\n\t\tp.clearFences(last)\n",
			Breaks: "a fence is forgotten although the handshake that was given it failed",
			Kill:   []Killer{by("pool", "TestAFenceIsKeptUntilAHandshakeThatWasGivenItSucceeds")},
		},
		{
			Name: "fence-passed-by-an-idle-one", File: lease,
			Old: "return len(p.mu.idle) > 0 && len(p.mu.fences) == 0", New: "return len(p.mu.idle) > 0",
			Breaks: "an idle connection is lent before the old session is fenced",
			Kill:   []Killer{by("pool", "TestAtTheLimitOneIdleConnectionMakesRoomForTheFencingDial", "TestAFenceIsKeptUntilAHandshakeThatWasGivenItSucceeds", "TestAWaiterIsNotServedAConnectionThatWouldPassTheFence")},
		},
		{
			Name: "liveness-not-looked-at", File: lease,
			Old: "\tcase io.EOF:\n\t\treturn ReasonPeerClosed, true\n", New: "\tcase io.EOF:\n\t\treturn 0, false\n",
			Breaks: "a connection that the server closed while it was idle is lent",
			Kill:   []Killer{by("pool", "TestAnIdleConnectionThatTheServerClosedOrWroteToIsNotLent")},
		},
		{
			Name: "size-exceeded", File: lease,
			Old: "waiting.Len() > 0 && p.mu.open < p.opts.Size:", New: "waiting.Len() > 0 && p.mu.open <= p.opts.Size:",
			Breaks: "one connection more than Size is open",
			Kill:   []Killer{by("pool", "TestEveryOptionReachesWhatItIsFor", "TestAtTheLimitOneIdleConnectionMakesRoomForTheFencingDial", "TestWaitingLeasesAreServedInOrder")},
		},
		{
			Name: "handshake-deadline-stays", File: establish,
			Old: "return a.conn.SetDeadline(time.Time{})", New: "return nil",
			Breaks: "the deadline of the dial ends the lease",
			Kill:   []Killer{by("pool", "TestTheDeadlineOfTheHandshakeIsGoneFromTheLease")},
		},
		{
			Name: "pool-backoff-not-growing", File: "pool/backoff.go",
			Old: "lo *= 2", New: "lo *= 1",
			Breaks: "the pause between failed dials does not grow",
			Kill:   []Killer{by("pool", "TestFailedDialsAreSpacedByAGrowingRandomBackoff")},
		},
		{
			Name: "late-connection-leaks", File: "pool/dial.go",
			Old: "\tif err != nil && a.conn != nil {\n", New: "\tif err != nil && a.conn != nil && deliver {\n",
			Breaks: "a connection that comes after its lease has left stays open",
			Kill:   []Killer{by("pool", "TestALateConnectionIsClosedAndItsPlaceServesTheNext", "TestAPanicAfterTheLeaseLeftClosesTheConnection")},
		},
		{
			Name: "dial-goexit-unheard", File: establish,
			Old: "func(e *panics.Error) { p.finish(a, e) }", New: "nil",
			Breaks: "a Goexit in a handshake leaves the lease waiting for the dial timeout",
			Kill:   []Killer{by("pool", "TestAPanicOrGoexitInACallbackFailsThatDialOnly")},
		},
		{
			Name: "panic-of-error-methods", File: "pool/reason.go",
			Old: `_ = panics.Catch("error", func() error { r = classOf(why); return nil })`, New: "r = classOf(why)",
			Breaks: "an error whose methods panic keeps its connection's place for good",
			Kill:   []Killer{by("pool", "TestAnErrorWhoseMethodsPanicStillGivesThePlaceBack")},
		},
		{
			Name: "close-of-a-connection-unguarded", File: "pool/conn.go",
			Old: `panics.Isolate("conn.Close", c.raw.Close)`, New: "c.raw.Close()",
			Breaks: "a connection whose Close panics ends the program",
			Kill:   []Killer{by("pool", "TestAConnectionWhoseCloseOrDeadlinePanicsIsClosedAllTheSame"), by("fdengine", "TestAConnectionThatPanicsInCloseOrDeadlineCostsItselfOnly")},
		},
		{
			Name: "goexit-not-told", File: "panics/panics.go",
			Old: "\t\tif exit != nil {\n", New: "\t\tif exit != nil && returned {\n",
			Breaks: "nobody hears of a Goexit in foreign code",
			Kill:   []Killer{by("pool", "TestAPanicOrGoexitInACallbackFailsThatDialOnly")},
		},
	}
}
