// Package differential holds tests that give the same random commands to two equal real servers: to one of them
// through this library, pipelined and from several callers at a time, to the other through the client that most
// programs use, one command at a time. All replies must be the same, and in the end all data.
//
// It knows which commands and which parts of replies depend on chance or on the clock, and leaves out or evens out
// those and no others; how the two clients work it does not know. There is no code here but tests. The number of
// commands and the seed are flags:
//
//	go test ./differential -timeout 10m -args -differential.commands=100000 -differential.seed=7
package differential
