//go:build unix

package beanstalkd

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// C46 b.
func TestADrainingServerRefusesPutsOnTheSameConnectionAndServesTheRest(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	w := realConsumer(t, srv.Addr(), nil)
	_, err := c.Put(bg, &Put{Body: []byte("before")})
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(srv.Pid(), syscall.SIGUSR1))
	ask := newWitness(t, srv.Addr())
	for !strings.Contains(ask.ask("stats"), "draining: true") {
	}
	for range 3 {
		p := &Put{Body: []byte(bait(1000)), Replay: true}
		_, err = c.Put(bg, p)
		require.ErrorIs(t, err, ErrDraining)
		require.Equal(t, carry.Answered, fdengine.FateOf(err))
		require.Equal(t, 1, p.Sends)
	}
	got, err := c.PeekReady(bg, "")
	require.NoError(t, err)
	require.Equal(t, "before", string(got.Body))
	j, err := w.Reserve(bg)
	require.NoError(t, err)
	require.NoError(t, j.Delete(bg))
	require.EqualValues(t, 1, c.Usage().Pool.Dials)
}
