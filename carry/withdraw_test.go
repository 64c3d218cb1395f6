package carry

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ticket is left over from a call whose block has since been recycled and is full of other people's records.
//
// Covers: E-43
func TestAWithdrawalAfterItsBlockWasRecycledTouchesNoStranger(t *testing.T) {
	var l Log[string]
	var old Ticket[string]
	r := Record[string]{Owner: "old", Frames: 1}
	r.Attach(&old)
	l.Append(&r, []byte("old"))
	first := l.tail
	answerAll(&l)
	strangers := make([]Ticket[string], 600)
	for i := range strangers {
		r := Record[string]{Owner: "stranger", Frames: 1}
		r.Attach(&strangers[i])
		l.Append(&r, []byte("stranger"))
	}
	require.Same(t, first, l.head, "the block is in use again")
	require.Equal(t, Withdrawal{}, seen(old.Withdraw()))
	require.Nil(t, old.blk, "an idle ticket keeps no block alive")
	live := 0
	l.Pending(func(*Record[string], bool) bool { live++; return true })
	require.Equal(t, len(strangers), live)

	// The same ticket, attached again, withdraws its own record and no other.
	r = Record[string]{Owner: "new", Frames: 1}
	require.True(t, old.Reusable())
	r.Attach(&old)
	l.Append(&r, []byte("new"))
	w := old.Withdraw()
	require.Equal(t, Withdrawal{Won: true, At: l.Published(), Fate: NotSent}, w)
	live = 0
	l.Pending(func(r *Record[string], _ bool) bool { require.Equal(t, "stranger", r.Owner); live++; return true })
	require.Equal(t, len(strangers), live)
	require.NoError(t, l.Check())
}

// answerAll writes and answers all that waits.
func answerAll[T any](l *Log[T]) (n int) {
	for {
		l.Lock()
		_, ok := l.Claim(1<<20, 1<<30, false)
		l.Unlock()
		if !ok {
			return n
		}
		var c Chunk[T]
		l.Lock()
		l.Begin(&c)
		l.Unlock()
		for r := c.Peek(); r != nil; r = c.Peek() {
			if r.Decide() {
				var none T
				r.Owner = none
				r.Settle()
			}
			c.Take()
			n++
		}
		l.Lock()
		l.End(&c)
		l.Unlock()
	}
}

// Withdraw once looked at home before the word: a record that came into another log in between was won under the
// wrong lock.
//
// Covers: E-43
func TestWithdrawingARecordOnItsWayBetweenTwoLogsWinsOnce(t *testing.T) {
	for range 20 {
		withdrawWhileMoving(t, 50, 4)
	}
	withdrawWhileMoving(t, 20000, 4)
	withdrawWhileMoving(t, 20000, 1)
}

func withdrawWhileMoving(t *testing.T, n, callersN int) {
	var logs [2]Log[int]
	tickets := make([]Ticket[int], n)
	done := make(chan struct{})
	var mover, callers sync.WaitGroup
	mover.Go(func() {
		for from := 0; ; from = 1 - from {
			a, b := &logs[from], &logs[1-from]
			a.Lock()
			ws := a.Evict()
			a.Unlock()
			b.Lock()
			b.Splice(ws)
			b.Unlock()
			select {
			case <-done:
				return
			default:
			}
		}
	})
	var pause atomic.Int64
	won := make([]int, callersN)
	for k := range won {
		callers.Go(func() {
			for i := k; i < n; i += len(won) {
				r := Record[int]{Owner: i, Frames: 1}
				r.Attach(&tickets[i])
				l := &logs[i%2]
				l.Lock()
				l.Append(&r, []byte("0123456789"))
				l.Unlock()
				if i%3 == 0 && callersN > 1 {
					runtime.Gosched()
				}
				for range i % 50 * 4 { // some nanoseconds, each time others
					pause.Load()
				}
				if w := tickets[i].Withdraw(); w.Won && w.Fate == NotSent {
					won[k]++
				}
			}
		})
	}
	callers.Wait()
	close(done)
	mover.Wait()
	all := 0
	for _, w := range won {
		all += w
	}
	require.Equal(t, n, all)
	for i := range logs {
		l := &logs[i]
		l.Evict() // drops those whose callers left while they were away
		require.NoError(t, l.Check())
		l.Pending(func(r *Record[int], _ bool) bool { t.Errorf("%d is still live", r.Owner); return true })
	}
}

func TestATicketThatWasInTwoLogsIsNotReusable(t *testing.T) {
	var a, b Log[int]
	var ticket Ticket[int]
	r := Record[int]{Owner: 1, Frames: 1}
	r.Attach(&ticket)
	a.Append(&r, []byte("x"))
	require.True(t, ticket.Reusable())
	require.Equal(t, 1, a.Splice(a.Evict()))
	require.True(t, ticket.Reusable())
	require.Equal(t, 1, b.Splice(a.Evict()))
	require.False(t, ticket.Reusable())
	require.Equal(t, 1, answerAll(&b))
	require.Zero(t, answerAll(&a))
	require.False(t, ticket.Reusable())
}

// What Withdraw answers and what it wins must be one look: the record may have been sent again in between.
//
// Covers: E-41
func TestTheFateOfARecordAwayIsInTheWordThatIsWon(t *testing.T) {
	var l Log[int]
	var ticket Ticket[int]
	r := Record[int]{Owner: 1, Frames: 1, Class: Replay, Budget: 3}
	r.Attach(&ticket)
	l.Append(&r, []byte("x"))
	refuse := func(ran bool) uint32 {
		s, ok := l.Claim(1, 1<<20, false)
		require.True(t, ok)
		require.Equal(t, 1, s.Commands)
		var c Chunk[int]
		l.Begin(&c)
		r := c.Peek()
		require.True(t, r.Decide())
		r.Refused(ran)
		ok, left := l.Refuse(r, c.Encoded(r), nil, 0, nil)
		require.True(t, ok)
		require.False(t, left)
		c.Take()
		l.End(&c)
		return ticket.word
	}
	first := refuse(false)
	l.Due(0)
	second := refuse(true)
	require.NotEqual(t, first, second, "an old look must not win")
	require.Equal(t, Withdrawal{Won: true, Fate: MaybeExecuted, Sends: 2, Broke: true}, seen(ticket.Withdraw()))
	require.Zero(t, l.Due(0))
	require.True(t, l.Empty())
}
