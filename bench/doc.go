// Package bench measures the engine as its users meet it: one connection, many callers, the three faces Do,
// Submit and DoBatch, against a server that only counts and against a real one. It holds the tests of what must
// not get worse unseen: allocations per command and commands per write. It knows nothing of other clients; those
// are compared in a module of their own.
package bench
