package pool_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// certificate makes a self-signed one for 127.0.0.1, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots
}

// listen accepts on loopback until the end of the test and runs serve for each connection, closing it after.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	serveOn(t, l, serve)
	return l.Addr().String()
}

func serveOn(t testing.TB, l net.Listener, serve func(net.Conn)) {
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
}

func drain(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

func TestATLSDialToAMutePeerEndsAtTheDialTimeout(t *testing.T) {
	addr := listen(t, drain)
	p := newPool(t, pool.Options{
		Addr: addr, TLS: &tls.Config{InsecureSkipVerify: true}, DialTimeout: 50 * time.Millisecond,
	})
	_, err := p.Lease(context.Background())
	requireDialTimeout(t, err, pool.PhaseTLS)
}

func TestCloseDuringATLSHandshakeReturnsAtOnce(t *testing.T) {
	began := make(chan struct{}, 1)
	addr := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		began <- struct{}{}
		drain(c)
	})
	p := newPool(t, pool.Options{Addr: addr, TLS: &tls.Config{InsecureSkipVerify: true}, DialTimeout: -1})
	got := leaseAsync(context.Background(), p)
	<-began
	require.NoError(t, p.Close())
	require.ErrorIs(t, (<-got).err, pool.ErrClosed)
	<-p.Done()
}

func TestACertificateErrorIsPermanentAndAPlaintextPeerIsNot(t *testing.T) {
	cert, roots := certificate(t)
	serve := func(c net.Conn) { echo(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})) }
	addr := listen(t, serve)
	for name, cfg := range map[string]*tls.Config{
		"unknown authority": {},
		"wrong name":        {RootCAs: roots, ServerName: "other.test"},
		"expired":           {RootCAs: roots, Time: func() time.Time { return time.Now().Add(48 * time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, pool.Options{Addr: addr, TLS: cfg})
			_, err := p.Lease(context.Background())
			var de *pool.DialError
			require.ErrorAs(t, err, &de)
			require.Equal(t, pool.PhaseTLS, de.Phase)
			require.True(t, pool.IsPermanent(err), "%v", err)
			require.Equal(t, 1, p.Stats().FailedRounds)
		})
	}
	plain := listen(t, func(c net.Conn) {
		_, _ = c.Write([]byte("-ERR this is no TLS\r\n"))
		drain(c)
	})
	p := newPool(t, pool.Options{Addr: plain, TLS: &tls.Config{RootCAs: roots}})
	_, err := p.Lease(context.Background())
	require.ErrorContains(t, err, "tls")
	require.False(t, pool.IsPermanent(err))
}

func TestATLSConnectionIsLentAgainWhileItIsQuiet(t *testing.T) {
	cert, roots := certificate(t)
	server := make(chan *tls.Conn, 2)
	addr := listen(t, func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		server <- s
		echo(s)
	})
	cfg := &tls.Config{RootCAs: roots}
	p := newPool(t, pool.Options{Addr: addr, TLS: cfg, Handshake: func(_ context.Context, d *pool.Dial) error {
		if _, err := d.Conn.Write([]byte("ping")); err != nil {
			return err
		}
		_, err := io.ReadFull(d.Conn, make([]byte, 4))
		return err
	}})
	c := lease(t, p)
	require.IsType(t, (*tls.Conn)(nil), c.Conn)
	require.False(t, c.ExactWrite())
	require.Empty(t, cfg.ServerName, "the caller's config is not changed")
	p.Put(c)
	d := lease(t, p)
	require.Equal(t, c.Conn, d.Conn)
	_, err := (<-server).Write([]byte("stray"))
	require.NoError(t, err)
	waitReadable(t, d.Conn.(*tls.Conn).NetConn())
	p.Put(d)
	e := lease(t, p)
	require.NotEqual(t, d.Conn, e.Conn)
	require.Equal(t, map[pool.Reason]uint64{pool.ReasonStray: 1}, p.Stats().Removed)
	p.Put(e)
}

// Closing a tls.Conn writes an alert, which blocks while the peer does not read. So no removal may do that,
// whichever side of the DialFunc the TLS is on.
func TestRemovingATLSConnectionWritesNoAlert(t *testing.T) {
	cert, roots := certificate(t)
	addr := listen(t, func(c net.Conn) { echo(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})) })
	cfg := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	for name, inside := range map[string]bool{"TLS by Options": false, "TLS by the DialFunc": true} {
		t.Run(name, func(t *testing.T) {
			var raw *writes
			o := pool.Options{Addr: addr, DialFunc: func(ctx context.Context, n, a string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, n, a)
				if err != nil {
					return nil, err
				}
				raw = &writes{Conn: c}
				if !inside {
					return raw, nil
				}
				layer := tls.Client(raw, cfg)
				return layer, layer.HandshakeContext(ctx)
			}}
			if !inside {
				o.TLS = cfg
			}
			p := newPool(t, o)
			c := lease(t, p)
			require.False(t, c.ExactWrite())
			before := raw.n.Load()
			require.Positive(t, before)
			p.Remove(c, errBoom)
			require.Equal(t, before, raw.n.Load())
			_, err := raw.Write([]byte("x"))
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
}

// writes counts them.
type writes struct {
	net.Conn
	n atomic.Int64
}

func (w *writes) Write(b []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(b)
}
