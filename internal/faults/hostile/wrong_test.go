package hostile

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// unexpected: a whole reply that cannot be one to the command.
func unexpected(t *testing.T, err error) {
	var ue *beanstalkd.UnexpectedError
	require.ErrorAs(t, err, &ue)
	require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err))
}

// answered: the server's word, which counts.
func answered(t *testing.T, err error) {
	var se *beanstalkd.ServerError
	require.ErrorAs(t, err, &se)
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
}

// Covers: C46, E-3
func TestAReplyOfBeanstalkdToAnotherCommandCutsTheConnection(t *testing.T) {
	for _, raw := range []string{
		"RESERVED 1 3\r\nabc\r\n", "FOUND 1 3\r\nabc\r\n", "OK 3\r\nabc\r\n", "DELETED\r\n", "USING default\r\n", "WATCHING 1\r\n", "KICKED 1\r\n",
		"TIMED_OUT\r\n", "DEADLINE_SOON\r\n", "BURIED\r\n", "NOT_FOUND\r\n", "TOUCHED\r\n", "PAUSED\r\n",
	} {
		t.Run(short(raw), func(t *testing.T) { attack{evil: saying(raw), check: unexpected}.run(t, beanstalkKit()) })
	}
}

// Some servers answer an over-long line twice.
// Covers: C46
func TestTwoRepliesOfBeanstalkdToOneCommandCutTheConnectionAtTheFirst(t *testing.T) {
	for _, raw := range []string{
		"BAD_FORMAT\r\nUNKNOWN_COMMAND\r\n", "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n", "EXPECTED_CRLF\r\nUNKNOWN_COMMAND\r\n",
	} {
		t.Run(short(raw), func(t *testing.T) { attack{evil: saying(raw), check: answered}.run(t, beanstalkKit()) })
	}
}

// consuming lets a Consumer reserve from a server whose first connection answers the reserve with raw bytes, and then
// once more.
func consuming(t *testing.T, raw string, check func(t *testing.T, job *beanstalkd.Job, err error)) {
	synctest.Test(t, func(t *testing.T) {
		network := new(memnet.Network)
		l, err := network.Listen("server:1")
		require.NoError(t, err)
		p := &peer{honest: beanstalkHonest{}, turn: 1, evil: func(v *visit, _ request) { v.say(raw) }}
		p.serve(l)
		c, err := beanstalkd.NewConsumer(beanstalkd.Options{Addr: "server:1", DialFunc: network.Dial})
		require.NoError(t, err)
		defer func() {
			_ = c.Close()
			<-c.Done()
			p.wait(l)
		}()
		job, err := c.ReserveWithTimeout(context.Background(), 0)
		check(t, job, err)
		job, err = c.ReserveWithTimeout(context.Background(), 0)
		require.ErrorIs(t, err, beanstalkd.ErrTimedOut)
		require.Nil(t, job)
		require.Equal(t, 2, network.Dials())
		tally.Scenario(1)
		tally.Cut(1)
	})
}

// Covers: C46, C33
func TestAReservationThatCannotBeReadIsNobodysJob(t *testing.T) {
	for _, raw := range []string{
		"RESERVED 1 -5\r\n", "RESERVED -1 5\r\nabcde\r\n", "RESERVED 1 2147483648\r\n", "RESERVED 1 3\r\nabcdef", "RESERVED 1\r\n",
	} {
		t.Run(short(raw), func(t *testing.T) {
			consuming(t, raw, func(t *testing.T, job *beanstalkd.Job, err error) {
				require.ErrorIs(t, err, beanstalkd.ErrTimedOut, "a reserve goes on on the next connection")
				require.Nil(t, job)
			})
		})
	}
	consuming(t, "INSERTED 1\r\n", func(t *testing.T, job *beanstalkd.Job, err error) {
		unexpected(t, err)
		require.Nil(t, job)
	})
}
