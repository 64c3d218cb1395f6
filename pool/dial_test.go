package pool_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// blackHole is a DialFunc that waits for the end of its ctx.
func blackHole(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func requireDialTimeout(t *testing.T, err error, ph pool.Phase) {
	t.Helper()
	var de *pool.DialError
	require.ErrorAs(t, err, &de)
	require.Equal(t, ph, de.Phase)
	require.ErrorIs(t, err, pool.ErrDialTimeout)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "it must not look like the caller's own deadline")
	require.False(t, pool.IsPermanent(err))
}

// One clock for the whole dial: phases that each take less than the timeout must not add up to more.
func TestTheDialTimeoutCoversAllPhasesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		slow := func(ctx context.Context) error {
			select {
			case <-time.After(2 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		o := pool.Options{
			DialFunc: func(ctx context.Context, n, a string) (net.Conn, error) {
				if err := slow(ctx); err != nil {
					return nil, err
				}
				return s.dial(ctx, n, a)
			},
			Handshake:   func(ctx context.Context, _ *pool.Dial) error { return slow(ctx) },
			Credentials: func(ctx context.Context) (string, string, error) { return "", "", slow(ctx) },
			OnConnect:   func(ctx context.Context, _ *pool.Conn) error { return slow(ctx) },
		}
		for timeout, ph := range map[time.Duration]pool.Phase{
			1 * time.Second: pool.PhaseConnect, 3 * time.Second: pool.PhaseCredentials,
			5 * time.Second: pool.PhaseHandshake, 7 * time.Second: pool.PhaseOnConnect,
		} {
			o.DialTimeout = timeout
			p := newPool(t, o)
			start := time.Now()
			_, err := p.Lease(context.Background())
			require.Equal(t, timeout, time.Since(start))
			requireDialTimeout(t, err, ph)
			synctest.Wait()
			require.Equal(t, map[pool.Phase]uint64{ph: 1}, p.Stats().DialFailures)
			require.Zero(t, p.Stats().Open)
			require.Zero(t, s.open())
		}
		o.DialTimeout = -1
		start := time.Now()
		p := newPool(t, o)
		p.Put(lease(t, p))
		require.Equal(t, 8*time.Second, time.Since(start), "negative = no timeout")
	})
}

func TestAHandshakeThatReadsFromAMutePeerEndsAtTheDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		read := func(_ context.Context, d *pool.Dial) error {
			_, err := d.Conn.Read(make([]byte, 1)) // looks at no ctx: the deadline ends it
			return err
		}
		p := newPool(t, pool.Options{DialFunc: s.dial, Handshake: read})
		start := time.Now()
		_, err := p.Lease(context.Background())
		require.Equal(t, 5*time.Second, time.Since(start))
		requireDialTimeout(t, err, pool.PhaseHandshake)
		synctest.Wait()
		require.Zero(t, s.open())
	})
}

func TestTheDeadlineOfTheHandshakeIsGoneFromTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{DialFunc: s.dial, OnPut: func(*pool.Conn) error { return nil }})
		c := lease(t, p)
		for range 2 { // after the dial, and after the deadline of OnPut
			go func() {
				time.Sleep(time.Hour)
				_, _ = s.mu.remote[0].Write([]byte("x"))
			}()
			n, err := c.Read(make([]byte, 1))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			p.Put(c)
			c = lease(t, p)
		}
		require.Equal(t, 1, s.dials())
		p.Put(c)
	})
}

// deadlines records what SetDeadline was given.
type deadlines struct {
	net.Conn
	set []time.Time
}

func (d *deadlines) SetDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return d.Conn.SetDeadline(t)
}

func TestTheHandshakeGetsTheEndOfTheDialTimeoutAsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		start := time.Now()
		var d *deadlines
		p := newPool(t, pool.Options{
			DialFunc: func(ctx context.Context, n, a string) (net.Conn, error) {
				time.Sleep(time.Second)
				c, err := s.dial(ctx, n, a)
				d = &deadlines{Conn: c}
				return d, err
			},
			Handshake: func(context.Context, *pool.Dial) error {
				require.Equal(t, []time.Time{start.Add(5 * time.Second)}, d.set)
				return nil
			},
		})
		c := lease(t, p)
		require.Equal(t, []time.Time{start.Add(5 * time.Second), {}}, d.set)
		p.Put(c)
	})
}

// Covers: E-11, E-13
func TestLeaseReturnsAtOnceAlthoughTheDialFuncIgnoresItsCtx(t *testing.T) {
	for name, end := range map[string]struct {
		with func(p *pool.Pool, cancel context.CancelFunc)
		want error
	}{
		"ctx":   {func(_ *pool.Pool, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"close": {func(p *pool.Pool, _ context.CancelFunc) { _ = p.Close() }, pool.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &peer{}
				gate := make(chan struct{})
				p := newPool(t, pool.Options{DialFunc: func(_ context.Context, n, a string) (net.Conn, error) {
					<-gate
					return s.dial(context.Background(), n, a)
				}})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				got := leaseAsync(ctx, p)
				synctest.Wait()
				start := time.Now()
				end.with(p, cancel)
				require.ErrorIs(t, (<-got).err, end.want)
				require.Zero(t, time.Since(start))
				require.Equal(t, 1, p.Stats().Open, "the dial keeps its place until it ends")
				require.Equal(t, uint64(1), p.Stats().DialsCanceled)
				require.Empty(t, p.Stats().DialFailures, "that was no fault of the server")
				_ = p.Close()
				synctest.Wait()
				select {
				case <-p.Done():
					t.Fatal("Done while a dial is running")
				default:
				}
				close(gate)
				<-p.Done()
				require.Equal(t, 1, s.dials())
				require.Zero(t, s.open(), "the late connection is closed")
				require.Zero(t, p.Stats().Open)
			})
		})
	}
}

func TestALateConnectionIsClosedAndItsPlaceServesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		p := newPool(t, pool.Options{Size: 1, DialFunc: func(_ context.Context, n, a string) (net.Conn, error) {
			time.Sleep(8 * time.Second) // ignores ctx; the dial timeout is 5 s
			return s.dial(context.Background(), n, a)
		}})
		_, err := p.Lease(context.Background())
		requireDialTimeout(t, err, pool.PhaseConnect)
		require.Equal(t, 1, p.Stats().FailedRounds)
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		_, err = p.Lease(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Minute)
		require.Zero(t, s.open())
		require.Zero(t, p.Stats().Open)
	})
}

func TestCancellingDuringTheHandshakeCutsItsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &peer{}
		ended := make(chan error, 2)
		p := newPool(t, pool.Options{DialFunc: s.dial, Handshake: func(_ context.Context, d *pool.Dial) error {
			_, err := d.Conn.Read(make([]byte, 1))
			ended <- err
			return err
		}})
		ctx, cancel := context.WithCancel(context.Background())
		got := leaseAsync(ctx, p)
		synctest.Wait()
		start := time.Now()
		cancel()
		require.ErrorIs(t, (<-got).err, context.Canceled)
		require.Error(t, <-ended)
		require.Zero(t, time.Since(start))

		got = leaseAsync(context.Background(), p)
		synctest.Wait()
		require.NoError(t, p.Close())
		require.ErrorIs(t, (<-got).err, pool.ErrClosed)
		require.Error(t, <-ended)
		<-p.Done()
		require.Zero(t, time.Since(start))
		require.Zero(t, s.open())
	})
}

func TestTheCallersDeadlineIsTheCallersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, pool.Options{DialFunc: blackHole})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := p.Lease(ctx)
		require.Equal(t, context.DeadlineExceeded, err)
		require.Zero(t, p.Stats().FailedRounds, "a caller in a hurry proves nothing about the server")
	})
}

func TestARefusedDialNamesAddressAndPhase(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	p := newPool(t, pool.Options{Addr: addr})
	_, err = p.Lease(context.Background())
	var de *pool.DialError
	require.ErrorAs(t, err, &de)
	require.Equal(t, addr, de.Addr)
	require.Equal(t, pool.PhaseConnect, de.Phase)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Contains(t, err.Error(), "dial "+addr+": connect: ")
}

func TestADialFuncThatReturnsNothingIsAFailedDial(t *testing.T) {
	p := newPool(t, pool.Options{DialFunc: func(context.Context, string, string) (net.Conn, error) { return nil, nil }})
	_, err := p.Lease(context.Background())
	var de *pool.DialError
	require.ErrorAs(t, err, &de)
	require.Equal(t, pool.PhaseConnect, de.Phase)
}

// Covers: S0-52
func TestTheFirstAndEveryLaterConnectionAreSetUpTheSameWay(t *testing.T) {
	s := &peer{}
	var steps []string
	n := 0
	p := newPool(t, pool.Options{
		DialFunc: func(ctx context.Context, network, a string) (net.Conn, error) {
			steps = append(steps, "connect "+network+" "+a)
			return s.dial(ctx, network, a)
		},
		Credentials: func(context.Context) (string, string, error) {
			n++
			steps = append(steps, "credentials")
			return "user", string(rune('0' + n)), nil
		},
		Handshake: func(_ context.Context, d *pool.Dial) error {
			steps = append(steps, "handshake "+d.Username+d.Password)
			d.Conn.Session, d.Conn.Unread = n, []byte("early")
			return nil
		},
		OnConnect: func(_ context.Context, c *pool.Conn) error {
			steps = append(steps, "onconnect")
			return nil
		},
	})
	for i, word := range []string{"user1", "user2", "user3"} {
		c := lease(t, p)
		require.Equal(t, i+1, c.Session)
		require.Equal(t, []byte("early"), c.Unread)
		require.Equal(t, []string{"connect tcp peer.test:1", "credentials", "handshake " + word, "onconnect"}, steps)
		steps = nil
		c.Unread = nil
		p.Put(c)
		c = lease(t, p)
		require.Empty(t, steps, "a connection that is used again keeps its session")
		require.Equal(t, i+1, c.Session)
		require.Empty(t, c.Unread)
		p.Remove(c, errBoom)
	}
}

// Covers: E-37
func TestARefusalAsTheFirstReplyIsADialFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go func() { _, _ = far.Write([]byte("-ERR max number of clients reached\r\n")) }()
		p := newPool(t, pool.Options{
			DialFunc: func(context.Context, string, string) (net.Conn, error) { return near, nil },
			Handshake: func(_ context.Context, d *pool.Dial) error {
				b := make([]byte, 64)
				n, err := d.Conn.Read(b)
				require.NoError(t, err)
				return &refusal{string(b[:n])}
			},
		})
		_, err := p.Lease(context.Background())
		var de *pool.DialError
		require.ErrorAs(t, err, &de)
		require.Equal(t, pool.PhaseHandshake, de.Phase)
		var r *refusal
		require.ErrorAs(t, err, &r)
		_, err = near.Write([]byte("x"))
		require.Error(t, err, "the connection must be closed")
	})
}

type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }
