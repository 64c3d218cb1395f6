package redis

import "github.com/fdengine/fullduplex/fdengine"

// RefusedWhole is an EVAL, EVALSHA or FCALL that the server refuses whole or not at all. Who makes one vouches that
//
//   - the script has written nothing, or has taken it back, when one of its commands is refused because the server
//     cannot serve now: READONLY, LOADING, BUSY, TRYAGAIN, CLUSTERDOWN, MASTERDOWN, NOREPLICAS. A script whose first
//     write decides is such a one: servers since 7.0 refuse none of these ways once a script has written;
//   - it answers in none of these words of its own.
//
// Such a refusal then means what it means for any other command: nothing ran, so the script goes out again after a
// pause, NoRetry or not, and its budget is not charged. A script that breaks the word may run more often than it
// should. Without it a refusal that may come from inside a script says nothing, and only a Replay one goes again, within
// its budget.
//
// It is given to Do, Submit, a Stream or DoBatch in place of the Cmd, which keeps the reply. Inside a Tx and on lent
// connections the server decides about the Cmd as without it.
type RefusedWhole struct{ *Cmd }

// Spec implements fdengine.Speccer.
func (r RefusedWhole) Spec() fdengine.Spec {
	s := r.Cmd.Spec()
	s.Opaque = false
	return s
}

// Verdict implements fdengine.Verdicter by the table in verdicts.go.
func (r RefusedWhole) Verdict(frames []byte, _ bool) fdengine.Verdict {
	e := errorOf(frames)
	if e == nil {
		return fdengine.Verdict{}
	}
	return judge(e, "", refusals(), true)
}
