package beanstalkd

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
)

func TestAllFaultsOfOptionsAreReportedAtOnce(t *testing.T) {
	o := Options{
		Addr: "nohost", Tube: "a b", MaxJobSize: 1<<30 + 1, ManyTubes: true, MaxAge: 1,
		Engine: fdengine.Options{
			Protocol: NewProtocol, Leaser: (*pool.Pool)(nil), Ping: func() fdengine.Command { return nil }, OnPush: func([]byte) {},
			Window: -1, IdleRelease: time.Hour, MaxHold: time.Hour, StrictOrder: true, Queue: 5,
		},
	}
	err := o.Validate()
	for _, word := range []string{
		`"nohost"`, "Tube: ", "' '", "MaxJobSize is 1073741825", "Engine.Protocol", "Engine.Leaser", "Engine.Ping", "Engine.OnPush", "Window is -1",
	} {
		require.ErrorContains(t, err, word)
	}
	_, newErr := New(o)
	require.Equal(t, err.Error(), newErr.Error())
	_, err = NewConsumer(o, "fine", "-bad")
	for _, word := range []string{`"nohost"`, "watched: ", "ManyTubes", "MaxAge", "Engine.Window", "Engine.IdleRelease", "Engine.MaxHold", "Engine.StrictOrder", "Engine.Queue"} {
		require.ErrorContains(t, err, word)
	}
	require.NoError(t, Options{Addr: "h:1"}.Validate())
	require.ErrorContains(t, Options{Addr: "h:99999"}.Validate(), `port "99999", it must be 1 to 65535`)
}

// Covers: S1-25
func TestEveryOptionReachesThePoolOrTheGate(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	gated := 0
	o := Options{
		Network: "unix", Addr: "/s", Tube: "mine", MaxJobSize: 3, TLS: &tls.Config{ServerName: "x"}, DialTimeout: 1, KeepAlive: 2, UserTimeout: 3, MaxAge: 4,
		DialFunc: dial,
		Engine: fdengine.Options{BackoffMin: 5, BackoffMax: 6, Gate: func(context.Context, fdengine.Command) error {
			gated++
			return nil
		}},
	}
	p := o.pool(nil)
	require.Equal(t, []any{"unix", "/s", o.TLS, time.Duration(1), time.Duration(2), time.Duration(3), time.Duration(4), time.Duration(5), time.Duration(6)},
		[]any{p.Network, p.Addr, p.TLS, p.DialTimeout, p.KeepAlive, p.UserTimeout, p.MaxAge, p.BackoffMin, p.BackoffMax})
	require.NotNil(t, p.DialFunc)
	req, _, err := handshake{tube: o.tube()}.script()
	require.NoError(t, err)
	require.Equal(t, "use mine\r\nlist-tube-used\r\n", string(req))

	gate := o.engine(nil).Gate
	require.NoError(t, gate(bg, &Put{Body: []byte("abc"), Tube: "mine"}))
	require.ErrorIs(t, gate(bg, &Put{Body: []byte("abc"), Tube: "other"}), ErrOtherTube)
	require.ErrorIs(t, gate(bg, PeekReady("other")), ErrOtherTube)
	require.NoError(t, gate(bg, StatsTube("other")))
	require.ErrorIs(t, gate(bg, &Put{Body: []byte("abcd")}), ErrJobTooBig)
	require.Equal(t, 2, gated)
	o.MaxJobSize, o.ManyTubes = -1, true
	gate = o.engine(nil).Gate
	require.NoError(t, gate(bg, &Put{Body: make([]byte, 1<<20), Tube: "other"}))
	o.MaxJobSize = 0
	gate = o.engine(nil).Gate
	require.NoError(t, gate(bg, &Put{Body: make([]byte, DefaultMaxJobSize)}))
	require.ErrorIs(t, gate(bg, &Put{Body: make([]byte, DefaultMaxJobSize+1)}), fdengine.ErrTooLarge)
}
