package pool_test

import (
	"context"
	"net"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/panics"
	"github.com/fdengine/fullduplex/pool"
)

// Covers: S4-14
func TestAPanicOrGoexitInACallbackFailsThatDialOnly(t *testing.T) {
	for name, die := range map[string]func(){
		"panic": func() { panic(errBoom) }, "goexit": runtime.Goexit,
	} {
		for _, phase := range []string{"connect", "credentials", "handshake", "onconnect"} {
			t.Run(phase+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &peer{}
					broken := true
					in := func(here string) {
						if broken && here == phase {
							die()
						}
					}
					p := newPool(t, pool.Options{
						DialFunc: func(ctx context.Context, n, a string) (net.Conn, error) {
							in("connect")
							return s.dial(ctx, n, a)
						},
						Credentials: func(context.Context) (string, string, error) { in("credentials"); return "", "", nil },
						Handshake:   func(context.Context, *pool.Dial) error { in("handshake"); return nil },
						OnConnect:   func(context.Context, *pool.Conn) error { in("onconnect"); return nil },
					})
					_, err := p.Lease(context.Background())
					var de *pool.DialError
					require.ErrorAs(t, err, &de)
					require.Equal(t, phase, de.Phase.String())
					var pe *panics.Error
					require.ErrorAs(t, err, &pe)
					require.Equal(t, phase, pe.Boundary)
					if name == "panic" {
						require.ErrorIs(t, err, errBoom)
					} else {
						require.ErrorIs(t, err, panics.ErrGoexit)
					}
					require.Zero(t, s.open())
					require.Zero(t, p.Stats().Open)
					require.Equal(t, 1, p.Stats().FailedRounds, "it counts as a dial failure")

					broken = false
					p.Put(lease(t, p))
					require.NoError(t, p.Close())
					<-p.Done()
					require.Zero(t, s.open())
				})
			})
		}
	}
}

// Covers: S4-14
func TestAPanicGoexitOrErrorInOnPutRemovesTheConnection(t *testing.T) {
	for name, die := range map[string]func() error{
		"panic":  func() error { panic(errBoom) },
		"goexit": func() error { runtime.Goexit(); return nil },
		"error":  func() error { return errBoom },
	} {
		t.Run(name, func(t *testing.T) {
			s := &peer{}
			n := &numbered{}
			broken := true
			p := newPool(t, pool.Options{
				DialFunc: s.dial, Handshake: n.handshake, Size: 1,
				OnPut: func(*pool.Conn) error {
					if broken {
						return die()
					}
					return nil
				},
			})
			returned := false
			func() {
				c := lease(t, p)
				p.Put(c)
				returned = true
			}()
			require.True(t, returned, "Put must return to its caller")
			require.Zero(t, s.open())
			require.Equal(t, map[pool.Reason]uint64{pool.ReasonOnPut: 1}, p.Stats().Removed)
			broken = false
			c := lease(t, p)
			require.Equal(t, []any{1}, n.lastFence(), "nobody knows what the hook left behind")
			p.Put(c)
			require.Equal(t, 1, p.Stats().Idle)
		})
	}
}

// Covers: S4-14
func TestAPanicAfterTheLeaseLeftClosesTheConnection(t *testing.T) {
	for name, die := range map[string]func(){
		"panic": func() { panic(errBoom) }, "goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &peer{}
				gate := make(chan struct{})
				p := newPool(t, pool.Options{
					DialFunc:  s.dial,
					Handshake: func(context.Context, *pool.Dial) error { <-gate; die(); return nil },
				})
				ctx, cancel := context.WithCancel(context.Background())
				got := leaseAsync(ctx, p)
				synctest.Wait()
				cancel()
				require.ErrorIs(t, (<-got).err, context.Canceled)
				close(gate)
				synctest.Wait()
				require.Zero(t, s.open())
				require.Zero(t, p.Stats().Open)
				require.NoError(t, p.Close())
				<-p.Done()
			})
		})
	}
}

func TestCallbacksMayUseTheirPool(t *testing.T) {
	s := &peer{}
	var p *pool.Pool
	nested := 0
	p = newPool(t, pool.Options{
		DialFunc: s.dial, Size: 2,
		OnConnect: func(ctx context.Context, c *pool.Conn) error {
			p.Put(c) // not lent yet: ignored
			if nested++; nested > 1 {
				return nil
			}
			other, err := p.Lease(ctx)
			if err != nil {
				return err
			}
			p.Put(other)
			return nil
		},
	})
	c := lease(t, p)
	require.Equal(t, uint64(2), p.Stats().Ignored)
	require.Equal(t, 2, p.Stats().Open)
	p.Put(c)
}

func TestPermanentErrorsAreRecognisedThroughTheDialError(t *testing.T) {
	p := newPool(t, pool.Options{
		DialFunc:  (&peer{}).dial,
		Handshake: func(context.Context, *pool.Dial) error { return pool.Permanent(errBoom) },
	})
	_, err := p.Lease(context.Background())
	require.True(t, pool.IsPermanent(err))
	require.ErrorIs(t, err, errBoom)
	require.EqualError(t, err, "dial peer.test:1: handshake: boom")
	require.False(t, pool.IsPermanent(errBoom))
	require.False(t, pool.IsPermanent(nil))
	require.NoError(t, pool.Permanent(nil))
}
