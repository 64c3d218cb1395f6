package mutants

// ofTryWrite breaks writes that do not wait.
func ofTryWrite() []Mutant {
	const direct, conn = "pool/direct.go", "pool/conn.go"
	return []Mutant{
		{
			Name: "try-waits-for-the-peer", File: direct,
			Old: "return d.out.run(b, d.once)", New: "return d.out.run(b, d.sock.Write)",
			Breaks: "a write that is only tried waits, and is subject to the deadline of writes",
			Kill:   []Killer{by("pool", "TestATriedWriteHeedsNoDeadline")},
		},
		{
			Name: "try-forgets-a-part", File: direct,
			Old: "return d.out.run(b, d.once)", New: "n, err := d.out.run(b, d.once)\n\tif n < len(b) {\n\t\tn = 0\n\t}\n\treturn n, err",
			Breaks: "what the kernel took of a tried write is written once more",
			Kill:   []Killer{by("pool", "TestATriedWriteToAPeerThatDoesNotReadSaysExactlyWhatTheKernelTook")},
		},
		{
			Name: "try-keeps-silent", File: direct,
			Old: "return d.out.run(b, d.once)", New: "n, _ := d.out.run(b, d.once)\n\treturn n, nil",
			Breaks: "a tried write to a connection that is lost looks like one to a peer that does not read",
			Kill:   []Killer{by("pool", "TestErrorsOfATriedWriteAreThoseOfPackageNet", "TestATriedWriteIsToldOfAReset")},
		},
		{
			Name: "try-beside-a-write", File: direct,
			Old: "if len(b) == 0 || !d.out.TryLock() {\n\t\treturn 0, nil", New: "if d.out.TryLock(); len(b) == 0 {\n\t\treturn 0, nil",
			Breaks: "a tried write goes into the middle of one that waits for the peer",
			Kill:   []Killer{by("pool", "TestATriedWriteBesideOneThatWaitsReturnsAtOnceWithNothing")},
		},
		{
			Name: "write-beside-a-try", File: direct,
			Old: "\td.out.Lock()\n", New: "\tif !d.out.TryLock() {\n\t\treturn d.conn.Write(b)\n\t}\n",
			Breaks: "a write that found another at work and went the way of package net is torn by a tried one",
			Kill:   []Killer{by("pool", "TestNoWriteIsTornByATriedOneNorTearsIt")},
		},
		{
			Name: "try-allocates", File: direct,
			Old: "d.once = func(func(uintptr) bool) error { return sock.Control(sendOnce) }", New: "d.once = func(step func(uintptr) bool) error {\n\t\treturn sock.Control(func(fd uintptr) { sendOnce(fd); _ = step })\n\t}",
			Breaks: "each tried write allocates",
			Kill:   []Killer{by("pool", "TestATriedWriteAllocatesNothing")},
		},
		{
			Name: "try-below-tls", File: direct,
			Old: "\tif stream != raw {\n\t\treturn nil\n\t}\n", New: "",
			Breaks: "bytes are written in the clear to the socket below TLS",
			Kill:   []Killer{by("pool", "TestALoanOfASocketCanTryAndOneWithTLSCannot")},
		},
		{
			Name: "try-lost-with-the-first-loan", File: conn,
			Old: "exact: c.exact, direct: c.direct, owner: c.owner,", New: "exact: c.exact, owner: c.owner,",
			Breaks: "a connection of a pool is never written without waiting",
			Kill:   []Killer{by("pool", "TestALoanOfASocketCanTryAndOneWithTLSCannot")},
		},
		{
			Name: "try-count-not-exact", File: conn,
			Old: "return c.direct != nil || can && c.exact", New: "return c.direct != nil || can",
			Breaks: "the count of a connection that cannot tell what it took is believed",
			Kill:   []Killer{by("pool", "TestAWriteMayBeTriedOnlyWhereItsCountIsToBeBelieved")},
		},
		{
			Name: "try-not-foreign", File: conn,
			Old: "return c.direct != nil || can && c.exact", New: "return c.direct != nil || can && c.exact && c.owner != nil",
			Breaks: "the TryWrite of a foreign connection is not used",
			Kill:   []Killer{by("pool", "TestAWriteMayBeTriedOnlyWhereItsCountIsToBeBelieved")},
		},
	}
}
