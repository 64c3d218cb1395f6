// Package beanstalkd is the binding for beanstalkd servers: it knows how a session is set up, which commands may
// run twice, which must never share a connection, what each refusal means for the command and the connection, and
// that a reserved job belongs to the connection that reserved it. It does not know how bytes are queued, resent or
// read: that is package fdengine, and proto/beanstalk for the bytes.
//
// A Client puts jobs and asks questions over one connection that all callers share. A Consumer reserves jobs over a
// connection of its own. A Put is one job with the place for its id, a Cmd any other command with the place for
// its reply. A refusal is a *ServerError, to be matched with errors.Is and ErrNotFound and its like.
//
// The server has no replication and no way to tell a job it has seen from a new one. So a Put is never sent twice
// unless it says that this does no harm, and one whose connection died may have been stored: its error says
// MaybeExecuted. Nor can the server be told to forget an old connection: what it had received there it may still
// store after a timeout, later than what was sent on the next one.
package beanstalkd
