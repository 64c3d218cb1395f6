// Package redis is the binding for Redis and Valkey servers: it knows how a session is set up, which commands
// may run twice, which must never share a connection, and what each error reply means for the command and the
// connection. It does not know how bytes are queued, resent or read: that is package fdengine, and proto/resp
// for the frames. One Client talks to one server over one connection that all callers share (or a few, Options.Lanes),
// and lends others for what must not share.
//
// A Cmd is one command with the place for its reply; a Tx is several of them between MULTI and EXEC. Both go
// through Client.Do, Submit, TrySubmit, SubmitBatch, DoBatch or a Stream. An error reply is a *ServerError, a null read as a
// value is Nil, and a command that must not share the connection is refused with ErrNotShared, which says what to
// use:
//
//   - Client.Blocking for BLPOP and the like, Client.Lend for several such commands or a state of one's own
//   - Client.Watch for optimistic transactions
//   - Client.Subscribe, PSubscribe and SSubscribe for messages
//
// Client.EvalScript runs Lua scripts by their digest.
package redis
