package redis

import (
	"strings"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

// refusal is one row of the table of error replies: how a code, and where needed a part of the message, is
// recognised, and what it means on a connection to one server.
type refusal struct {
	code string           // exact
	text string           // prefix of the message, in any letter case; empty: any
	v    fdengine.Verdict // Hint is filled in by redirect
	addr hintForm
}

// hintForm says where the message names another server.
type hintForm uint8

const (
	noHint   hintForm = iota
	hintLast          // the last word is host:port
	hintAsk           // the same, and ASKING must go before the command there
)

// refusals lists what is not simply the answer of its command; the first row that fits decides. Not in it, so
// delivered with the connection kept: caller errors (WRONGTYPE, CROSSSLOT, ERR and unknown codes), EXECABORT
// outside a Tx, NOSCRIPT, NOPERM, WRONGPASS, MISCONF and OOM. The last two say that the server refuses writes
// until someone repairs it, with every attempt; how long to try again is the caller's decision.
func refusals() []refusal {
	// The server said no before it ran anything, and will say yes later.
	later := fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo}
	// The same, but on another connection: this one leads to a server that is no longer the primary.
	elsewhere := fdengine.Verdict{Then: fdengine.RetryHere, Ran: fdengine.RanNo, Conn: fdengine.Retire}
	redirect := fdengine.Verdict{Then: fdengine.Reroute, Ran: fdengine.RanNo}
	return []refusal{
		{code: "LOADING", v: later},
		{code: "BUSY", v: later},
		{code: "TRYAGAIN", v: later},
		{code: "CLUSTERDOWN", v: later},
		{code: "MASTERDOWN", v: later},
		{code: "NOREPLICAS", v: later},
		{code: "READONLY", v: elsewhere},
		{code: "ERR", text: "READONLY", v: elsewhere}, // as some proxies word it
		{code: "UNBLOCKED", text: "client unblocked via", v: fdengine.Verdict{Ran: fdengine.RanNo}},
		{code: "UNBLOCKED", v: elsewhere},
		{code: "MOVED", v: redirect, addr: hintLast},
		{code: "ASK", v: redirect, addr: hintAsk},
		{code: "REDIRECT", v: redirect, addr: hintLast},
		{code: "NOAUTH", v: fdengine.Verdict{Ran: fdengine.RanNo, Conn: fdengine.Retire}},
		{code: "ERR", text: "Protocol error", v: fdengine.Verdict{Conn: fdengine.Cut}},
		{code: "ERR", text: maxClients, v: fdengine.Verdict{Conn: fdengine.Cut}},
	}
}

// maxClients is the message that comes instead of the first reply when the server accepts no more connections.
const maxClients = "max number of clients reached"

// judge finds the verdict on an error reply. host completes a redirect that names only a port. whole: the command is
// a script that is refused whole or not at all (RefusedWhole).
func judge(e *ServerError, host string, rows []refusal, whole bool) fdengine.Verdict {
	for i := range rows {
		row := &rows[i]
		if row.code != e.Code || !hasPrefixFold(e.Message, row.text) {
			continue
		}
		v := row.v
		if row.addr != noHint {
			v.Hint.Addr = redirectAddr(e.Message, host)
			if row.addr == hintAsk {
				v.Hint.Prefix, v.Hint.Frames = []byte("*1\r\n$6\r\nASKING\r\n"), 1
			}
		}
		if fromScript(e.Message) && !whole {
			v.Ran = fdengine.RanMaybe
		}
		return v
	}
	if in := wrapped(e); in != nil {
		if v := judge(in, host, rows, whole); v.Then == fdengine.RetryHere {
			if !whole {
				v.Ran = fdengine.RanMaybe
			}
			return v
		}
	}
	return fdengine.Verdict{}
}

// fromScript says whether an error was raised by a command inside a script or function: what the script did
// before that has taken effect. Servers since 7.0 add the place to the original error, older ones wrap it.
func fromScript(message string) bool {
	return strings.Contains(message, " script: ") || strings.Contains(message, "@user_") ||
		hasPrefixFold(message, scriptWrap)
}

// scriptWrap is how servers before 7.0 begin the message around an error of a command inside a script.
const scriptWrap = "Error running script"

// wrapped is the error around which such a server has put a message of its own; nil when there is none.
func wrapped(e *ServerError) *ServerError {
	if e.Code != "ERR" || !hasPrefixFold(e.Message, scriptWrap) {
		return nil
	}
	_, text, ok := strings.Cut(e.Message, ": -")
	if !ok {
		return nil
	}
	return newServerError(resp.Error(text))
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
