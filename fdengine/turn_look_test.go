//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package fdengine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
)

// holder is a word behind whose caller, in the chain, comes one that does not get a CPU.
type holder struct {
	word
	hold func()
}

func (h *holder) DecodeReply(r fdengine.Reply) error {
	h.hold()
	return h.word.DecodeReply(r)
}

// Covers: E-1, E-37
func TestWhatTheServerSaysWhileTheReaderWaitsForAChainAnswersNothingThatItWritesThen(t *testing.T) {
	p := startParrot(t)
	e, err := fdengine.New(fdengine.Options{Leaser: p, Protocol: func() fdengine.Protocol { return lines{} }, LoneCaller: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()); <-e.Done() }()
	e.SetWorthWaiting(1)
	for round, tries := 0, 0; round < 20; tries++ {
		require.Less(t, tries, 1000)
		var held *fdengine.HeldUp
		first, next := make(chan error, 1), make(chan error, 1)
		h := &holder{word: word{ask: "first"}, hold: func() { held = e.HoldUp() }}
		go func() { first <- e.Do(bg, h) }()
		for e.Chains() == 0 {
			runtime.Gosched()
		}
		p.say(t, "unasked")
		for !e.Arrived() { // the kernel may take its time
			runtime.Gosched()
		}
		w := &word{ask: fmt.Sprintf("next%d", round)}
		require.NoError(t, e.Submit(bg, w, told(next)))
		cuts, waits := e.Stats().Cuts, e.ReaderWaits() // else the sweeper has ended the wait: this goroutine had no CPU for a tick
		held.Release()
		require.NoError(t, <-first)
		require.NoError(t, <-next)
		if !waits {
			continue
		}
		round++
		require.Equal(t, w.ask, w.answer)
		require.Equal(t, cuts+1, e.Stats().Cuts, "it ends the connection")
	}
}

// told passes an outcome on.
type told chan error

func (c told) Complete(_ fdengine.Command, err error) { c <- err }
