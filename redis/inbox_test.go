package redis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func message(i int) Message { return Message{Channel: "c", Payload: []byte(fmt.Sprint(i))} }

// received takes n messages out of b as text: payloads, and what is missing.
func received(t *testing.T, b *inbox, n int) (out []string) {
	for range n {
		m, err := b.receive(context.Background())
		require.NoError(t, err)
		out = append(out, describeMessage(m))
	}
	return out
}

func describeMessage(m Message) string {
	if m.Missed == nil {
		return string(m.Payload)
	}
	s := fmt.Sprintf("dropped %d", m.Missed.Dropped)
	if !m.Missed.From.IsZero() {
		s += fmt.Sprintf(" gap %v", m.Missed.To.Sub(m.Missed.From))
	}
	return s
}

func TestAFullInboxDropsAndSaysHowManyAtTheirPlace(t *testing.T) {
	b := newInbox(3, false)
	for i := range 8 {
		b.put(message(i))
	}
	require.Equal(t, []string{"0"}, received(t, b, 1))
	b.put(message(8))
	b.put(message(9))
	require.Equal(t, []string{"1", "2", "dropped 5", "8", "dropped 1"}, received(t, b, 5))
	b.put(message(10))
	require.Equal(t, []string{"10"}, received(t, b, 1))
}

func TestGapsAndDropsBetweenTheSameMessagesAreOne(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	b := newInbox(1, false)
	b.miss(Missed{From: at(1), To: at(3), Cause: errors.New("a")})
	b.put(message(0))
	b.put(message(1))
	b.miss(Missed{From: at(10), To: at(12), Cause: errors.New("b")})
	b.miss(Missed{From: at(14), To: at(15), Cause: errors.New("c")})
	require.Equal(t, []string{"dropped 0 gap 2s", "0", "dropped 1 gap 5s"}, received(t, b, 3))
}

func TestAnInboxThatBlocksWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox(3, true)
		done := make(chan struct{})
		go func() {
			for i := range 500 {
				b.put(message(i))
			}
			close(done)
		}()
		synctest.Wait()
		require.Len(t, b.mu.queue, 3)
		for i := range 500 {
			require.Equal(t, []string{fmt.Sprint(i)}, received(t, b, 1))
		}
		<-done
		for range 3 {
			b.put(message(0))
		}
		blocked := make(chan struct{})
		go func() { b.put(message(1)); close(blocked) }()
		synctest.Wait()
		b.end(errors.New("over"))
		<-blocked
	})
}

func TestAnInboxThatEndedGivesWhatIsLeftAndThenTheReasonToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox(10, false)
		over := errors.New("over")
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				for {
					if _, err := b.receive(context.Background()); err != nil {
						errs <- err
						return
					}
				}
			}()
		}
		b.put(message(0))
		b.put(message(1))
		synctest.Wait()
		b.end(over)
		b.end(errors.New("later"))
		for range 3 {
			require.Equal(t, over, <-errs)
		}
		b.put(message(2))
		require.Empty(t, b.mu.queue)

		b = newInbox(10, false)
		b.put(message(0))
		b.miss(Missed{Dropped: 1})
		b.end(over)
		require.Equal(t, []string{"0", "dropped 1"}, received(t, b, 2))
		_, err := b.receive(context.Background())
		require.Equal(t, over, err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = newInbox(1, false).receive(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestAnInboxKeepsTheOrderAndLetsItsMemoryGo(t *testing.T) {
	b := newInbox(1000, false)
	next := 0
	for i := range 20000 {
		b.put(message(i))
		if i > 300 {
			require.Equal(t, []string{fmt.Sprint(next)}, received(t, b, 1))
			next++
		}
	}
	require.Less(t, cap(b.mu.queue), 2000)
	require.Zero(t, b.mu.queue[:cap(b.mu.queue)][cap(b.mu.queue)-1].Payload)
}
