// Package cases holds tests only: one for each public bug report that a pipelining client of our kind has had, told
// again as a story against this library. Each test names its source. It knows the engine and both bindings from
// outside; it does not know how they work inside. Failover and cluster cases, which need several nodes, live with the
// cluster package.
//
// Six oracles judge every story, whatever it is about (book_test.go, rig_test.go):
//
//	G1  each command settled exactly once
//	G2  a reply went only to the command that caused it
//	G3  the server ran a NoRetry command at most once, any other at most 1 + budget times, one NotSent never
//	G4  after Done no connection is open and none is dialed
//	G5  a connection that was given up carries nothing more
//	G6  what one submitter sent arrives in the order of its submits, replays included
package cases
