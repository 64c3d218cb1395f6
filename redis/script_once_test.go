package redis

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/scripted"
)

// noScript is what a server says that does not know a script.
const noScript = "NOSCRIPT No matching script. Please use EVAL."

// A server that answers the source as well with NOSCRIPT, such as a proxy that knows no scripts at all, has given its
// answer.
//
// Covers: E-6
func TestAScriptThatStaysUnknownIsSentByItsSourceOnce(t *testing.T) {
	so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if strings.HasPrefix(req.Verb(), "EVAL") && req.Attempt < 10 { // one that is asked for ever ends
			return scripted.Refuse(noScript)
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		_, err := r.EvalScript(context.Background(), NewScript("good"), []string{"k"})
		require.Equal(t, "NOSCRIPT", codeOf(err))
		require.Zero(t, r.server.Executed())
		sent := strings.Fields(verbs(r.server, 0))
		require.Equal(t, []string{"EVALSHA", "EVAL"}, sent[len(sent)-2:])
	})
}

// The first send of a script died with its connection, and may have run. The server that the second reached had lost
// its scripts: that word is about the second send alone.
//
// Covers: E-6, E-41
func TestAnUnknownScriptThatMayHaveRunBeforeIsNotSentByItsSource(t *testing.T) {
	so := scripted.Options{Script: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		switch {
		case req.Verb() == "EVALSHA" && req.Attempt == 1:
			return scripted.DropAfter()
		case req.Verb() == "EVALSHA":
			return scripted.Refuse(noScript)
		}
		return scripted.Action{}
	}}
	bubble(t, so, Options{}, func(t *testing.T, r *rig) {
		sc := NewScript("good").AllowReplay()
		_, err := r.EvalScript(context.Background(), sc, []string{"k"})
		requireMaybe(t, err)
		require.Equal(t, "NOSCRIPT", codeOf(err))
		require.Equal(t, 1, r.server.Executions(sc.Digest()))
		require.Zero(t, r.server.Executions("good"))
	})
}
