package mutants

// ofBindings breaks what the bindings know about their servers.
func ofBindings() []Mutant {
	return []Mutant{
		{
			Name: "frame-without-cr", File: "proto/resp/scanner.go",
			Old: "if b[end] != '\\r' || b[end+1] != '\\n' {", New: "if b[end+1] != '\\n' {",
			Breaks: "a bulk whose end is not where its length says is taken for whole",
			Kill:   []Killer{by("proto/resp", "TestABulkMustEndWithBothBytesOfALineEnd")},
		},
		{
			Name: "body-without-crlf", File: "proto/beanstalk/scanner.go",
			Old: "if buf[n-2] != '\\r' || buf[n-1] != '\\n' {", New: "if buf[n-1] != '\\n' {",
			Breaks: "a job whose end is not where its length says is taken for whole",
			Kill:   []Killer{by("proto/beanstalk", "TestWhatIsNotTheProtocolIsATypedErrorForGood")},
		},
		{
			Name: "tube-name-too-long", File: "proto/beanstalk/name.go",
			Old: "case len(name) > MaxName:", New: "case len(name) > 2*MaxName:",
			Breaks: "a tube's name of more than 200 bytes is written",
			Kill:   []Killer{by("proto/beanstalk", "TestANameThatNoTubeCanHaveIsRefusedAndLeavesNoTrace")},
		},
		{
			Name: "tube-name-injects", File: "proto/beanstalk/name.go",
			Old: "\t\t\tif !inName(name[i]) {\n\t\t\t\treason", New: "\t\t\tif !inName(name[i]) && name[i] != '\\r' {\n\t\t\t\treason",
			Breaks: "a line end in a tube's name is written as it is",
			Kill:   []Killer{by("proto/beanstalk", "TestANameThatNoTubeCanHaveIsRefusedAndLeavesNoTrace")},
		},
		{
			Name: "noscript-retried-endlessly", File: "redis/script.go",
			Old: "\tif unknownScript(err) {\n", New: "\tfor unknownScript(err) {\n",
			Breaks: "a script is sent by its source until the server knows it",
			Kill:   []Killer{by("redis", "TestAScriptThatStaysUnknownIsSentByItsSourceOnce")},
		},
		{
			Name: "noscript-believed-in-doubt", File: "redis/script.go",
			Old: "fdengine.FateOf(err) == carry.Answered &&", New: "fdengine.FateOf(err) != carry.NotSent &&",
			Breaks: "a script runs twice when an earlier send of it may have run",
			Kill:   []Killer{by("redis", "TestAnUnknownScriptThatMayHaveRunBeforeIsNotSentByItsSource")},
		},
		{
			Name: "script-error-taken-for-noscript", File: "redis/script.go",
			Old: `strings.EqualFold(strings.TrimRight(e.Message, "."), "No matching script. Please use EVAL")`, New: `strings.HasPrefix(e.Message, "")`,
			Breaks: "a script that raised an error of its own runs again",
			Kill:   []Killer{by("redis", "TestAScriptsOwnErrorIsNotTakenForAnUnknownScript")},
		},
		{
			Name: "dirty-connection-lent", File: "redis/lend.go",
			Old: "l.n.unfit = l.n.unfit || l.dirty", New: "l.n.unfit = l.n.unfit && l.dirty",
			Breaks: "a connection with WATCH or SELECT on it is lent to the next",
			Kill:   []Killer{by("redis", "TestALentConnectionKeepsItsStateToItself")},
		},
		{
			Name: "lost-session-replaced", File: "redis/tether.go",
			Old: "\tif pinned {\n\t\treturn nil, pool.Permanent(ErrSessionLost)\n\t}\n", New: "\t_ = pinned\n",
			Breaks: "commands of a lent connection go on on another one",
			Kill:   []Killer{by("redis", "TestALostLentConnectionIsNotReplacedUnderItsBorrower", "TestAConnectionLostUnderWatchAbortsAndNothingRunsOnAnotherOne")},
		},
		{
			Name: "url-password-quoted", File: "redis/url.go",
			Old: `return Options{}, errors.New("redis: URL cannot be parsed")`, New: `return Options{}, fmt.Errorf("redis: URL cannot be parsed: %w", err)`,
			Breaks: "an error of ParseURL quotes the password",
			Kill:   []Killer{by("redis", "TestURLsAreReadAndWhatIsNotUnderstoodIsAnErrorWithoutThePassword")},
		},
		{
			Name: "client-keeps-password", File: "redis/client.go",
			Old: "options: o.sealed(),", New: "options: o,",
			Breaks: "a Client that is printed shows the password",
			Kill:   []Killer{by("redis", "TestNoPrintedFormOfAnythingShowsThePassword")},
		},
		{
			Name: "quoted-password-shown", File: "redis/wire.go",
			Old: "least := min(quoted, len(secret))", New: "least := len(secret)",
			Breaks: "a part of the password that a server quotes is in the error",
			Kill:   []Killer{by("redis", "TestNoErrorEventOrLogLineOfARefusedPasswordShowsIt")},
		},
		{
			Name: "dial-shows-password", File: "pool/dial_print.go",
			Old: `s += "password *** "`, New: `s += "password " + d.Password`,
			Breaks: "what a handshake gets shows the password when it is printed",
			Kill:   []Killer{by("redis", "TestNoPrintedFormOfAnythingShowsThePassword")},
		},
		{
			Name: "readonly-keeps-connection", File: "redis/verdicts.go",
			Old: `{code: "READONLY", v: elsewhere},`, New: `{code: "READONLY", v: later},`,
			Breaks: "writes are tried again on the connection to a demoted server",
			Kill:   []Killer{by("redis", "TestEachErrorReplyHasTheVerdictOfTheTable")},
		},
		{
			Name: "script-refusal-is-proof", File: "redis/verdicts.go",
			Old: "if fromScript(e.Message)", New: "if row.addr == hintAsk && fromScript(e.Message)",
			Breaks: "a refusal inside a script is taken for proof that the script did nothing",
			Kill:   []Killer{by("redis", "TestEachErrorReplyHasTheVerdictOfTheTable")},
		},
		{
			Name: "half-transaction-retried", File: "redis/tx_reply.go",
			Old: "\tif x.ran {\n\t\treturn fdengine.Verdict{Conn: v.Conn}\n\t}\n", New: "",
			Breaks: "commands that ran because MULTI was refused run again",
			Kill:   []Killer{by("redis", "TestCommandsThatRanBecauseMultiWasRefusedAreNeverSentAgain")},
		},
		{
			Name: "ping-not-checked", File: "redis/handshake.go",
			Old: `if s, err := r.Text(); refused == nil && (err != nil || s != "PONG") {`, New: `if _, err := r.Text(); refused == nil && err != nil {`,
			Breaks: "a session whose replies are out of step counts as usable",
			Kill:   []Killer{by("redis", "TestARefusedStepFailsTheDialAndSomeRefusalsForGood")},
		},
		{
			Name: "put-of-another-tube-accepted", File: "beanstalkd/verdicts.go",
			Old: "case r.Word == beanstalk.Using && string(r.Name) != tube:", New: "case r.Word == beanstalk.Using && len(r.Name) == 0:",
			Breaks: "a reply out of step with its use is taken for the put's",
			Kill:   []Killer{by("beanstalkd", "TestAPutInATubeIsJudgedByBothItsReplies")},
		},
		{
			Name: "wrong-tube-stored-twice", File: "beanstalkd/verdicts.go",
			Old: "\tcase !a.Word.Refusal():\n\t\treturn fdengine.Verdict{Conn: u.Conn}\n", New: "\tcase !a.Word.Refusal():\n\t\treturn u\n",
			Breaks: "a job that was stored in another tube is stored again",
			Kill:   []Killer{by("beanstalkd", "TestAJobThatWasStoredInAnotherTubeIsReportedWithItsIdAndNotStoredAgain", "TestAPutInATubeIsJudgedByBothItsReplies")},
		},
		{
			Name: "internal-error-keeps-connection", File: "beanstalkd/verdicts.go",
			Old: "{beanstalk.InternalError, fdengine.Verdict{Conn: fdengine.Retire}},", New: "{beanstalk.InternalError, fdengine.Verdict{}},",
			Breaks: "a connection to a server with a fault is kept",
			Kill:   []Killer{by("beanstalkd", "TestEachReplyHasTheVerdictOfTheTable")},
		},
		{
			Name: "job-deleted-elsewhere", File: "beanstalkd/link.go",
			Old: "if needs != 0 && (needs != l.mu.epoch || l.mu.gone) {", New: "if needs != 0 && l.mu.gone {",
			Breaks: "a command for a job goes to a connection that did not reserve it",
			Kill:   []Killer{by("beanstalkd", "TestNoCommandForAJobEverReachesAnotherConnection", "TestAJobOfALostConnectionIsLostAndNoCommandForItGoesElsewhere")},
		},
	}
}
