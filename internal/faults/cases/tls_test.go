package cases_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/redis"
)

// certified makes both sides of a TLS connection whose certificate is valid on the clock of a bubble.
func certified(t *testing.T) (client *tls.Config, accept func(int, *memnet.Conn) net.Conn) {
	t.Helper()
	cert := testserver.NewCertificate(t)
	now := time.Now()
	cert.Client.Time = func() time.Time { return now }
	cert.Server.Time = cert.Client.Time
	return cert.Client, func(_ int, c *memnet.Conn) net.Conn { return tls.Server(c, cert.Server) }
}

// C44: only the connect was timed, and a TLS handshake with a mute or plaintext server hung; closing wrote an alert
// and hung on a peer that did not read.
// https://github.com/redis/go-redis/issues/799 https://github.com/gomodule/redigo/issues/509
// https://github.com/golang/go/issues/31224 https://github.com/nats-io/nats-server/pull/284
func TestTLSNeitherHangsNorGivesHalfAReply(t *testing.T) {
	client, accept := certified(t)
	t.Run("a mute server", func(t *testing.T) {
		ro := redis.Options{TLS: client, DialTimeout: 300 * time.Millisecond, Engine: fdengine.Options{MaxOutage: time.Second}}
		redisBubble(t, setup{}, ro, func(t *testing.T, r *redisRig) {
			r.server.FreezeReads(true)
			start := time.Now()
			short := redis.Incr("short").WithTimeout(100 * time.Millisecond)
			r.submit(short)
			pass(150 * time.Millisecond)
			r.failed(t, short, carry.NotSent, fdengine.ErrTimeout)
			require.Equal(t, 1, r.net.Dials())
			pass(200 * time.Millisecond)
			require.True(t, r.conn(0).Closed(), "the dial ends with its timeout, the handshake included")
			fails(t, r.run(bg, redis.Incr("n")), carry.NotSent, fdengine.ErrUnavailable)
			took(t, start, time.Second, 2*time.Second)
			require.LessOrEqual(t, r.net.Dials(), 8)
		})
	})
	t.Run("a plaintext server", func(t *testing.T) {
		ro := redis.Options{TLS: client, DialTimeout: 300 * time.Millisecond, Engine: fdengine.Options{MaxOutage: time.Second}}
		redisBubble(t, setup{}, ro, func(t *testing.T, r *redisRig) {
			start := time.Now()
			fails(t, r.run(bg, redis.Incr("n")), carry.NotSent, fdengine.ErrUnavailable)
			took(t, start, 0, 1500*time.Millisecond)
			require.LessOrEqual(t, r.net.Dials(), 15, "no hot loop")
		})
	})
	t.Run("Close during the handshake", func(t *testing.T) {
		redisBubble(t, setup{}, redis.Options{TLS: client}, func(t *testing.T, r *redisRig) {
			r.server.FreezeReads(true)
			c := redis.Incr("n")
			r.submit(c)
			pass(100 * time.Millisecond)
			start := time.Now()
			require.NoError(t, r.Client.Close())
			synctest.Wait()
			r.failed(t, c, carry.NotSent, fdengine.ErrClosed)
			<-r.Done()
			took(t, start, 0, 200*time.Millisecond)
			r.server.FreezeReads(false)
		})
	})
	t.Run("Close of a connection whose peer does not read", func(t *testing.T) {
		ro := redis.Options{TLS: client, Engine: fdengine.Options{ReadTimeout: -1, WriteTimeout: -1}}
		redisBubble(t, setup{Accept: accept}, ro, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("warm")))
			r.conn(0).Out().Freeze()
			big := redis.Set("big", strings.Repeat("x", 1<<20))
			r.submit(big)
			synctest.Wait()
			start := time.Now()
			ctx, cancel := context.WithTimeout(bg, time.Second)
			defer cancel()
			_, err := r.Shutdown(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			took(t, start, time.Second, 1200*time.Millisecond)
			synctest.Wait()
			r.failed(t, big, carry.MaybeExecuted, fdengine.ErrClosed)
			<-r.Done()
			took(t, start, time.Second, 1200*time.Millisecond)
		})
	})
	t.Run("leaving such a connection does not hold up the next", func(t *testing.T) {
		ro := redis.Options{TLS: client, Engine: fdengine.Options{ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond}}
		redisBubble(t, setup{Accept: accept}, ro, func(t *testing.T, r *redisRig) {
			require.NoError(t, r.run(bg, redis.Echo("warm")))
			r.conn(0).Out().Freeze()
			start := time.Now()
			big := redis.Set("big", strings.Repeat("x", 1<<20))
			r.submit(big)
			r.expect(big, nil)
			require.NoError(t, r.run(bg, redis.Echo("next")))
			took(t, start, 500*time.Millisecond, 700*time.Millisecond)
			r.settled(time.Second)
			r.ok(t, big)
			tally.Cut(1)
		})
	})
	t.Run("a certificate nobody trusts", func(t *testing.T) {
		stranger := client.Clone()
		stranger.RootCAs = x509.NewCertPool()
		redisBubble(t, setup{Accept: accept}, redis.Options{TLS: stranger}, func(t *testing.T, r *redisRig) {
			start := time.Now()
			var bad *tls.CertificateVerificationError
			for _, token := range tokens("n", 5) {
				err := r.run(bg, redis.Incr(token))
				fails(t, err, carry.NotSent, fdengine.ErrUnavailable)
				require.ErrorAs(t, err, &bad)
			}
			took(t, start, 0, 5*time.Second)
			pass(time.Minute)
			require.LessOrEqual(t, r.net.Dials(), 6, "one for each that asked")
		})
	})
	t.Run("cut inside a record", func(t *testing.T) {
		value := strings.Repeat("0123456789abcdef", 1<<10) // one record
		s := script{"k": always(scripted.Action{Reply: scripted.AppendBulk(nil, value)})}
		rnd := tally.Rand(44)
		answered, dropped := 0, 0
		for range tally.Count(25, 300) {
			at := rnd.Int64N(19 << 10)
			onDial := func(n int, c, _ *memnet.Conn) error {
				if n == 1 {
					c.In().CutAt(at, memnet.Cut{})
				}
				return nil
			}
			ro := redis.Options{TLS: client}
			redisBubble(t, setup{Server: s.options(), Accept: accept, OnDial: onDial}, ro, func(t *testing.T, r *redisRig) {
				get := redis.Get("k").WithClass(carry.NoRetry)
				r.submit(get)
				r.expect(get, nil)
				r.settled(time.Minute)
				if err := r.err(t, get); err != nil {
					fails(t, err, carry.MaybeExecuted)
					dropped++
				} else {
					got, err := get.Text()
					require.NoError(t, err)
					require.Equal(t, value, got, "whole or not at all")
					answered++
				}
				require.NoError(t, r.run(bg, redis.Echo("after")))
			})
			tally.Cut(1)
		}
		require.Positive(t, dropped)
		require.Positive(t, answered)
	})
}
