package fdengine_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/panics"
)

// The tests named broken_* hold what a fresh reader of the engine broke. In this file: foreign values whose methods
// panic where nobody expects foreign code.

// fated and wrapping are errors whose nil pointers panic when asked for more than their text.
type fated struct{ fate carry.Fate }

func (*fated) Error() string      { return "fated" }
func (f *fated) Fate() carry.Fate { return f.fate }

type wrapping struct{ cause error }

func (*wrapping) Error() string   { return "wrapping" }
func (w *wrapping) Unwrap() error { return w.cause }

// typedNils are errors that are not nil and panic all the same.
func typedNils() map[string]error {
	return map[string]error{"Fate": (*fated)(nil), "Unwrap": (*wrapping)(nil), "OpError": (*net.OpError)(nil)}
}

// A decoder returned a typed nil error. Its Fate or Unwrap panicked as if the reader itself had: the command was in
// nobody's hands any more, and its caller waited for good.
//
// Covers: S4-14, E-22
func TestADecodersErrorWhoseMethodsPanicCostsItsCommandOnly(t *testing.T) {
	for name, typedNil := range typedNils() {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				o, bad := &outcomes{}, scripted.Echo("bad")
				bad.DecodeErr = typedNil
				before, behind := scripted.Echo("before"), scripted.Echo("behind")
				r.together(func() { submitAll(t, r, o, before, bad, behind) })
				pass(time.Second)
				ok(t, o, before, behind)
				failed(t, o, bad, carry.Answered)
				var p *panics.Error
				require.ErrorAs(t, settledOf(t, o, bad), &p)
				require.Equal(t, "DecodeReply", p.Boundary)
				require.Equal(t, []string{"before", "bad", "behind"}, r.server.Order())
				require.Zero(t, r.Stats().Cuts, "the stream is framed")
				require.NoError(t, r.Do(bg, scripted.Echo("after")))
			})
		})
	}
}

// lost is a protocol whose Next fails with a given error.
type lost struct {
	scripted.Protocol
	err error
}

func (l *lost) Next([]byte) (int, int, fdengine.Kind, error) { return 0, 0, 0, l.err }

// Protocol.Next returned a typed nil error. Asking what kind of error that is panicked in the reader, outside of all
// borders.
//
// Covers: S4-14
func TestAFramersErrorWhoseMethodsPanicIsACut(t *testing.T) {
	for name, typedNil := range typedNils() {
		t.Run(name, func(t *testing.T) {
			sessions := 0
			o := fdengine.Options{Protocol: func() fdengine.Protocol {
				if sessions++; sessions == 1 {
					return &lost{err: typedNil}
				}
				return scripted.NewProtocol()
			}}
			bubble(t, setup{Engine: o}, func(t *testing.T, r *rig) {
				oc, n, p := &outcomes{}, scripted.Echo("n"), scripted.ReplayEcho("p")
				submitAll(t, r, oc, n, p)
				pass(3 * time.Second)
				failed(t, oc, n, carry.MaybeExecuted)
				ok(t, oc, p)
				require.Equal(t, 1, r.server.Executions("n"))
				require.Equal(t, uint64(1), r.Stats().Cuts)
			})
		})
	}
}

// A Leaser returned a typed nil error. Whether it is permanent was asked under the engine's lock, which the panic
// left locked.
//
// Covers: S4-14
func TestALeasersErrorWhoseMethodsPanicIsADialFailure(t *testing.T) {
	for name, typedNil := range typedNils() {
		for _, by := range []string{"Lease", "DialFunc"} {
			t.Run(by+" "+name, func(t *testing.T) {
				bubble(t, setup{}, func(t *testing.T, r *rig) {
					broken := true
					fail := func() error {
						if broken {
							broken = false
							return typedNil
						}
						return nil
					}
					if by == "Lease" {
						r.leaser.OnLease = func(int) error { return fail() }
					} else {
						dial := r.leaser.DialFunc
						r.leaser.DialFunc = func(ctx context.Context) (net.Conn, error) {
							if err := fail(); err != nil {
								return nil, err
							}
							return dial(ctx)
						}
					}
					require.NoError(t, r.Do(bg, scripted.Echo("a")))
					require.Equal(t, uint64(1), r.Stats().LeaseErrors)
				})
			})
		}
	}
}

// touchy is a connection of somebody else's making, that fails once where it is told to.
type touchy struct {
	net.Conn
	armed                      atomic.Bool
	afterRead, afterWrite, adr func()
}

func (c *touchy) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.afterRead != nil && c.armed.CompareAndSwap(true, false) {
		c.afterRead()
	}
	return n, err
}

func (c *touchy) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.afterWrite != nil && c.armed.CompareAndSwap(true, false) {
		c.afterWrite()
	}
	return n, err
}

func (c *touchy) RemoteAddr() net.Addr {
	if c.adr != nil {
		c.adr()
	}
	return c.Conn.RemoteAddr()
}

// firstOnly wraps the first connection of a rig in c.
func firstOnly(c *touchy) func(net.Conn) net.Conn {
	return func(nc net.Conn) net.Conn {
		if c.Conn != nil {
			return nc
		}
		c.Conn = nc
		return c
	}
}

// A connection's Write let all bytes through and panicked then, in code that counts them. The claim was taken for
// unsent, and the NoRetry command in it ran twice.
//
// Covers: E-5, S4-6, S4-14
func TestAWriteThatFailsInForeignCodeMayHaveLeft(t *testing.T) {
	misbehave(t, func(t *testing.T, deed func()) {
		c := &touchy{}
		s := script{"n": first(1, scripted.Action{NoReply: true})} // it fails before an answer could tell
		bubble(t, setup{Server: s.options(), Wrap: firstOnly(c)}, func(t *testing.T, r *rig) {
			require.NoError(t, r.Ping(bg))
			synctest.Wait() // its reply may have come before its write returned
			c.afterWrite = func() {
				time.Sleep(10 * time.Millisecond) // the server runs what it got
				deed()
			}
			c.armed.Store(true)
			o, n := &outcomes{}, scripted.Echo("n")
			submitAll(t, r, o, n)
			pass(3 * time.Second)
			failed(t, o, n, carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
			require.Equal(t, 1, r.server.Executions("n"))
			require.NoError(t, r.Do(bg, scripted.Echo("after")))
			require.Equal(t, uint64(1), r.Stats().Cuts)
		})
	})
}

// A connection's Read panicked after it had taken bytes off the wire. It was taken for a fault of the reader's own.
//
// Covers: S4-14, E-5
func TestAReadThatPanicsIsACut(t *testing.T) {
	c := &touchy{afterRead: func() { panic("counting") }}
	bubble(t, setup{Wrap: firstOnly(c)}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		o, n, p := &outcomes{}, scripted.Echo("n"), scripted.ReplayEcho("p")
		r.together(func() {
			submitAll(t, r, o, n, p)
			c.armed.Store(true)
		})
		pass(3 * time.Second)
		failed(t, o, n, carry.MaybeExecuted)
		var pe *panics.Error
		require.ErrorAs(t, settledOf(t, o, n), &pe)
		require.Equal(t, "conn.Read", pe.Boundary)
		ok(t, o, p)
		require.Equal(t, 1, r.server.Executions("n"))
		require.Equal(t, uint64(1), r.Stats().Cuts)
	})
}

// A connection's RemoteAddr panicked, under the engine's lock, which stayed locked: for a name in an event.
//
// Covers: S4-14
func TestAConnectionThatCannotSayItsAddressIsUsedAllTheSame(t *testing.T) {
	c := &touchy{adr: func() { panic("no address") }}
	bubble(t, setup{Wrap: firstOnly(c)}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Do(bg, scripted.Echo("a")))
		require.NoError(t, r.Do(bg, scripted.Echo("b")))
		require.Equal(t, 1, r.server.Conns())
		require.NotZero(t, r.Stats().Panics)
	})
}

// A Rerouter adopted a list with a nil in it. The engine panicked on it with its lock held.
//
// Covers: S4-14
func TestAdoptSkipsWhatIsNil(t *testing.T) {
	s := script{"m": always(scripted.Refuse("MOVED 7 b:1"))}
	twoEngines(t, setup{Server: s.options()}, setup{}, func(t *testing.T, p *pair) {
		p.b.Adopt(nil)
		p.set(func(_ error, cs []*fdengine.Carry) { p.b.Adopt(append([]*fdengine.Carry{nil}, cs...)...) })
		require.NoError(t, p.a.Do(bg, scripted.Echo("m")))
		require.NoError(t, p.b.Do(bg, scripted.Echo("b")))
		pass(time.Second)
		require.Equal(t, []string{"m", "b"}, p.b.server.Order())
	})
}

// failing is a connection that cannot say what of a failed write left; its writes fail whole when told.
type failing struct {
	net.Conn
	broken atomic.Bool
}

func (c *failing) Write(b []byte) (int, error) {
	if c.broken.Load() {
		return 0, errors.New("broken")
	}
	return c.Conn.Write(b)
}

// A command without reply went into a write that failed as a whole, on a connection that cannot tell exactly. The
// cautious answer for a command with a reply, that all of it left, called this one sent: success, and it never ran.
//
// Covers: S0-41
func TestACommandWithoutReplyIsNotCalledSentWhenNobodyKnows(t *testing.T) {
	var c *failing
	wrap := func(nc net.Conn) net.Conn {
		if c != nil {
			return nc
		}
		c = &failing{Conn: nc}
		return c
	}
	bubble(t, setup{Wrap: wrap}, func(t *testing.T, r *rig) {
		require.NoError(t, r.Ping(bg))
		c.broken.Store(true)
		quiet := scripted.Echo("quiet")
		quiet.Traits.Frames = fdengine.NoReply
		failsAs(t, r.Do(bg, quiet), carry.MaybeExecuted, fdengine.ErrMaybeExecuted)
		pass(time.Second)
		require.Zero(t, r.server.Executions("quiet"), "nor is it sent again")
	})
}
