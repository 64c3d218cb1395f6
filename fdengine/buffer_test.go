package fdengine_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// owner is a command that gives a buffer of its own instead of appending to the one it is given.
type owner struct {
	*scripted.Cmd
	req []byte
}

func (o *owner) AppendRequest([]byte) ([]byte, error) { return o.req, nil }

//
func TestABufferOfTheEncodersOwnIsNeverWrittenTo(t *testing.T) {
	for _, size := range []int{10, 1000, carry.BigRequest, 100_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				own := &owner{Cmd: scripted.Echo("own")}
				own.req = append(make([]byte, 0, 2*size), scripted.AppendRequest(nil, "ECHO", "own", string(bytes.Repeat([]byte("o"), size)))...)
				before := bytes.Clone(own.req[:cap(own.req)])
				for i := range 20 {
					require.NoError(t, r.Do(bg, own))
					for j := range 1 + i%3 {
						other := scripted.Echo(fmt.Sprintf("other%d-%d", i, j))
						other.Args = []string{strings.Repeat("x", size-i%7)}
						require.NoError(t, r.Do(bg, other))
					}
					require.Equal(t, before, own.req[:cap(own.req)])
				}
				require.NoError(t, r.DoBatch(bg, []fdengine.Command{own, scripted.Echo("b"), own, scripted.Echo("c")}, nil))
				require.Equal(t, before, own.req[:cap(own.req)])
			})
		})
	}
}

// Covers: E-36
func TestBigRequestsArriveAsTheyWereEachTimeTheyAreSent(t *testing.T) {
	var seen, wrong int
	load := func(token string, size int) string { return strings.Repeat(token+".", size/(len(token)+1)) }
	script := func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
		if req.Token() == "PING" || len(req.Args) < 3 {
			return scripted.Action{}
		}
		var size int
		_, err := fmt.Sscanf(req.Token(), "t%d-", &size)
		if err != nil || req.Args[2] != load(req.Token(), size) {
			wrong++
		}
		if seen++; seen%7 == 0 {
			return scripted.DropAfter()
		}
		return scripted.Action{}
	}
	bubble(t, setup{Server: scripted.Options{Script: script}}, func(t *testing.T, r *rig) {
		for round := range 6 {
			both := &outcomes{}
			var cmds []*scripted.Cmd
			for i := range 12 {
				size := carry.BigRequest + 3000*(i%5)
				c := scripted.ReplayEcho(fmt.Sprintf("t%d-%d-%d", size, round, i))
				c.Args = []string{load(c.Token, size)}
				c.Traits.Budget = 100
				cmds = append(cmds, c)
			}
			submitAll(t, r, both, cmds...)
			for _, c := range cmds[:2] {
				small := scripted.ReplayEcho("s" + c.Token)
				small.Traits.Budget = 100
				require.NoError(t, r.Do(bg, small))
			}
			synctest.Wait()
			for both.count() < len(cmds) {
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	require.Greater(t, seen, 6*12, "some were sent again")
	require.Zero(t, wrong)
}

// headroom is a command that leaves room in front of its request.
type headroom struct{ *scripted.Cmd }

func (h headroom) AppendRequest(dst []byte) ([]byte, error) {
	n := len(dst)
	enc, err := h.Cmd.AppendRequest(append(dst, make([]byte, 32)...))
	return enc[n+32:], err
}

//
func TestARequestThatBeginsInsideTheBufferIsSentWhole(t *testing.T) {
	for _, size := range []int{100, 40 << 10} {
		bubble(t, setup{}, func(t *testing.T, r *rig) {
			var all []fdengine.Command
			for i := range 40 {
				c := scripted.Echo(fmt.Sprintf("h%d-%d", size, i))
				c.Args = []string{strings.Repeat("x", size)}
				require.NoError(t, r.Do(bg, headroom{c}))
				require.Equal(t, c.Token, c.Reply)
				b := scripted.Echo(fmt.Sprintf("b%d-%d", size, i))
				b.Args = c.Args
				all = append(all, headroom{b})
			}
			require.NoError(t, r.DoBatch(bg, all, nil))
			require.Equal(t, 1, r.server.Conns())
		})
	}
}

// Covers: E-40
func TestBuffersOfBigRequestsAreLetGoAfterASecondOfIdleness(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		both := &outcomes{}
		var cmds []*scripted.Cmd
		for i := range 8 {
			c := scripted.Echo(fmt.Sprintf("c%d", i))
			c.Args = []string{strings.Repeat("x", 100_000)}
			cmds = append(cmds, c)
		}
		for range 3 {
			submitAll(t, r, both, cmds...)
			synctest.Wait()
		}
		require.Greater(t, r.Spare(), 100_000)
		time.Sleep(2500 * time.Millisecond)
		require.Zero(t, r.Spare())
		require.NoError(t, r.Do(bg, scripted.Echo("last")))
	})
}
