package target

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
)

type sink struct{ outcomes int }

func (s *sink) Done(*submit.Ticket, error) { s.outcomes++ }

func TestAJobCostsNoAllocation(t *testing.T) {
	entry, inserted := []byte("$15\r\n1700000000000-0\r\n"), []byte("INSERTED 17\r\n")
	job := submit.Job{ID: []byte("id"), Queue: []byte("queue"), Payload: make([]byte, 500), Own: true}
	var (
		done   sink
		ticket submit.Ticket
		p      push
		b      = put{t: &tube{}}
		buf    = make([]byte, 0, 4096)
		err    error
	)
	redis := func(to *server) func() {
		to.loaded.Store(true)
		return func() {
			ticket.Traits = to.Traits(job)
			if err = p.build(to, job, &ticket, &done); err == nil {
				buf, err = p.AppendRequest(buf[:0])
			}
			if err != nil {
				t.Error(err)
			}
			p.complete(p.DecodeReply(fdengine.Reply{Frame: entry, Sends: 1}))
		}
	}
	for name, f := range map[string]func(){
		"stream":          redis(&server{key: "s", ids: IDsNever}),
		"stream with ids": redis(&server{key: "s", idsKey: "s:ids"}),
		"list":            redis(&server{key: "l", list: true, ids: IDsNever}),
		"list with ids":   redis(&server{key: "l", list: true, idsKey: "l:ids"}),
		"tube": func() {
			b.ticket, b.done = &ticket, &done
			b.body = append(b.body[:0], job.Payload...)
			b.Body = b.body
			if buf, err = b.AppendRequest(buf[:0]); err != nil {
				t.Error(err)
			}
			b.Complete(&b.Put, b.DecodeReply(fdengine.Reply{Frame: inserted, Sends: 1}))
		},
	} {
		done.outcomes = 0
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
		require.Equal(t, 1001, done.outcomes)
		require.Equal(t, 1, ticket.Sends, name)
	}
}

func TestAJobIsNeverSentTwiceUnlessRetriesWereAskedFor(t *testing.T) {
	var a push
	to := &server{key: "stream", retries: 3}
	var ticket submit.Ticket
	require.NoError(t, a.build(to, submit.Job{}, &ticket, new(sink)))
	require.Equal(t, fdengine.Spec{Class: carry.Replay, Budget: 3}, a.Spec())
	to.retries = 0
	require.NoError(t, a.build(to, submit.Job{}, &ticket, new(sink)))
	require.Equal(t, fdengine.Spec{Class: carry.NoRetry}, a.Spec(), "XADD would be NoRetry anyhow, and the command object is used again")
}

func TestTheSendsOfAJobAreKnownHoweverItEnds(t *testing.T) {
	var a push
	to := &server{key: "stream", retries: 3}
	var c completions
	var ticket submit.Ticket
	require.NoError(t, a.build(to, submit.Job{}, &ticket, new(sink)))
	c.Complete(&a, a.DecodeReply(fdengine.Reply{Frame: []byte("$3\r\n1-0\r\n"), Sends: 2}))
	require.Equal(t, 2, ticket.Sends)
	require.NoError(t, a.build(to, submit.Job{}, &ticket, new(sink)))
	c.Complete(&a, &fdengine.CallError{Sends: 4})
	require.Equal(t, 4, ticket.Sends)
}

func TestPagesGrowToTheirSizeAndNotBeyond(t *testing.T) {
	for _, tc := range []struct{ entries, bytes, want int }{
		{1000, 100_000, pageBytes / 101},
		{1000, 1000, mostPage},
		{1000, 1000 * (32 << 20), 1},
		{0, 5, pageBytes / 6},
	} {
		p := page{entries: tc.entries, bytes: tc.bytes}
		require.Equal(t, min(tc.want, mostPage), p.nextCount(), "%+v", tc)
	}
}
