package testserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestARedisAnswersItsWitness(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{})
	require.Equal(t, "OK", r.Text("SET", "k", "two\r\nlines"))
	require.Equal(t, "two\r\nlines", r.Text("GET", "k"))
	require.Empty(t, r.Text("GET", "none"))
	require.Equal(t, 1, r.Int("INCR", "n"))
	require.Equal(t, 2, r.Int("INCR", "n"))
	require.Zero(t, r.Int("GET", "none"))
	_, err := r.Do("INCR", "k")
	var e testserver.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Error(), "not an integer")

	w := r.Witness()
	v, err := w.Do("MULTI")
	require.NoError(t, err)
	require.Equal(t, "OK", v)
	for _, q := range [][]string{{"SET", "a", "1"}, {"LPUSH", "a", "x"}, {"LRANGE", "none", "0", "-1"}, {"GET", "none"}} {
		v, err = w.Do(q...)
		require.NoError(t, err)
		require.Equal(t, "QUEUED", v)
	}
	v, err = w.Do("EXEC")
	require.NoError(t, err)
	list := v.([]any)
	require.Len(t, list, 4)
	require.Equal(t, "OK", list[0])
	require.ErrorContains(t, list[1].(error), "WRONGTYPE")
	require.Equal(t, []any{}, list[2])
	require.Nil(t, list[3])
	require.Empty(t, r.UnixSocket())
	require.Empty(t, r.TLSAddr())
	require.Nil(t, r.TLSConfig())
}

func TestKill9ClosesEveryConnectionAndRestartKeepsPortAndData(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--appendonly", "yes"}})
	addr, pid, w := r.Addr(), r.Pid(), r.Witness()
	require.Equal(t, "OK", r.Text("SET", "kept", "yes"))
	r.Kill9()
	require.Zero(t, r.Pid())
	_, err := w.Do("PING")
	require.Error(t, err)
	var ne net.Error
	require.False(t, errors.As(err, &ne) && ne.Timeout(), "ended, not silent")
	_, err = r.Do("PING")
	require.Error(t, err, "nobody listens")
	r.Kill9()

	r.Restart()
	require.Equal(t, addr, r.Addr())
	require.NotEqual(t, pid, r.Pid())
	require.Equal(t, "yes", r.Text("GET", "kept"))
	r.Restart()
	require.Equal(t, "yes", r.Text("GET", "kept"), "a restart of a running server is a kill -9 first")
}

func TestWithoutPersistenceARestartForgets(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{})
	require.Equal(t, "OK", r.Text("SET", "k", "v"))
	r.Restart()
	require.Empty(t, r.Text("GET", "k"))
}

func TestAStoppedServerIsSilentAndGoesOnWhereItWas(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{})
	w := r.Witness()
	require.Equal(t, "OK", r.Text("SET", "k", "v"))
	r.Stop()
	c, err := net.Dial("tcp", r.Addr())
	require.NoError(t, err, "the kernel still accepts")
	defer c.Close()
	_, err = c.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	r.Cont()
	v, err := w.Do("GET", "k")
	require.NoError(t, err)
	require.Equal(t, "v", v)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	buf := make([]byte, 7)
	n, err := c.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", string(buf[:n]), "what it was sent while stopped is answered")

	r.Stop()
	r.Kill9()
}

func TestARedisListensOnAUnixSocketToo(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{Unix: true})
	require.Equal(t, "OK", r.Text("SET", "k", "v"))
	for range 2 {
		w, err := testserver.NewWitness(t.Context(), "unix", r.UnixSocket(), nil)
		require.NoError(t, err)
		v, err := w.Do("PING")
		require.NoError(t, err)
		require.Equal(t, "PONG", v)
		require.NoError(t, w.Close())
		r.Restart()
	}
}

func TestARedisServesTLSToAClientThatTrustsIt(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{TLS: true})
	w, err := testserver.NewWitness(t.Context(), "tcp", r.TLSAddr(), r.TLSConfig())
	require.NoError(t, err)
	defer w.Close()
	v, err := w.Do("PING")
	require.NoError(t, err)
	require.Equal(t, "PONG", v)

	config := r.TLSConfig()
	config.RootCAs = nil
	stranger, err := testserver.NewWitness(t.Context(), "tcp", r.TLSAddr(), config)
	require.NoError(t, err)
	defer stranger.Close()
	_, err = stranger.Do("PING")
	require.ErrorContains(t, err, "certificate")
}

func TestARedisWithAPasswordKnowsItsWitness(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{Password: "secret"})
	require.Equal(t, "OK", r.Text("SET", "k", "v"))
	v, err := r.Witness().Do("GET", "k")
	require.NoError(t, err)
	require.Equal(t, "v", v)
	w, err := testserver.NewWitness(t.Context(), "tcp", r.Addr(), nil)
	require.NoError(t, err)
	defer w.Close()
	_, err = w.Do("GET", "k")
	require.ErrorContains(t, err, "NOAUTH")
}

func TestAClusterNodeFindsRoomForItsSecondPort(t *testing.T) {
	r := testserver.StartRedis(t, testserver.RedisOptions{Args: []string{"--cluster-enabled", "yes"}})
	require.Contains(t, r.Text("CLUSTER", "INFO"), "cluster_state:fail")
}

func TestAStrangerOnThePortIsNotTakenForTheServer(t *testing.T) {
	stranger := testserver.StartRedis(t, testserver.RedisOptions{})
	f := &fakeTB{TB: t}
	f.play(func() {
		r := testserver.StartRedis(f, testserver.RedisOptions{})
		addr := r.Addr()
		r.Kill9()
		require.Equal(t, "OK", stranger.Text("CONFIG", "SET", "port", addr[strings.LastIndexByte(addr, ':')+1:]))
		r.Restart()
	})
	require.Contains(t, f.failed, "restart of redis-server")
}

func TestABeanstalkdKeepsItsJobsInABinlog(t *testing.T) {
	for _, keep := range []bool{false, true} {
		var args []string
		if keep {
			args = []string{"-b", ".", "-f", "0"}
		}
		p := testserver.StartBeanstalkd(t, args...)
		require.Equal(t, "INSERTED 1\r\n", ask(t, p.Addr(), "put 0 0 60 1\r\nx\r\n"))
		p.Kill9()
		p.Restart()
		want := "NOT_FOUND\r\n"
		if keep {
			want = "FOUND 1 1\r\n"
		}
		require.Equal(t, want, ask(t, p.Addr(), "peek 1\r\n"))
	}
}

// ask sends text and returns the first line of the answer.
func ask(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte(text))
	require.NoError(t, err)
	var line []byte
	for b := make([]byte, 1); !strings.HasSuffix(string(line), "\n"); line = append(line, b...) {
		_, err := c.Read(b)
		require.NoError(t, err)
	}
	return string(line)
}

// fakeTB is a test whose end is looked at. Skip and Fatal end its goroutine as the real ones do.
type fakeTB struct {
	testing.TB
	skipped, failed string
	cleanups        []func()
}

func (f *fakeTB) Helper()           {}
func (f *fakeTB) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *fakeTB) Skip(args ...any)  { f.skipped = fmt.Sprint(args...); runtime.Goexit() }
func (f *fakeTB) Fatal(args ...any) { f.failed = fmt.Sprint(args...); runtime.Goexit() }
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// play runs fn as the body of f, with its cleanups.
func (f *fakeTB) play(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		fn()
	}()
	<-done
}

func TestAMissingBinarySkipsAndFailsWhereServersAreRequired(t *testing.T) {
	start := func(tb testing.TB) {
		testserver.StartRedis(tb, testserver.RedisOptions{Binary: "no-such-redis-server"})
	}
	t.Setenv("FULLDUPLEX_REQUIRE_SERVERS", "")
	f := &fakeTB{TB: t}
	f.play(func() { start(f) })
	require.Contains(t, f.skipped, "Debian package redis-server")
	require.Empty(t, f.failed)

	t.Setenv("FULLDUPLEX_REQUIRE_SERVERS", "1")
	f = &fakeTB{TB: t}
	f.play(func() { start(f) })
	require.Contains(t, f.failed, "Debian package redis-server")
	require.Empty(t, f.skipped)
}

func TestAServerThatCannotStartFailsTheTestWithItsOutput(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		testserver.Missing(t, "redis-server is not installed (Debian package redis-server)")
	}
	f := &fakeTB{TB: t}
	f.play(func() { testserver.StartRedis(f, testserver.RedisOptions{Args: []string{"--no-such-directive", "1"}}) })
	require.Contains(t, f.failed, "ended while starting")
	require.Contains(t, f.failed, "no-such-directive")
}

// script writes an executable that stands for a server binary.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "server")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return path
}

func TestABuildWithoutTLSIsSkipped(t *testing.T) {
	t.Setenv("FULLDUPLEX_REQUIRE_SERVERS", "")
	f := &fakeTB{TB: t}
	binary := script(t, "echo 'Bad directive or wrong number of arguments'; exit 1")
	f.play(func() { testserver.StartRedis(f, testserver.RedisOptions{Binary: binary, TLS: true}) })
	require.Contains(t, f.skipped, "cannot serve TLS")
	require.Contains(t, f.skipped, "Bad directive")
}

func TestAPortThatWasTakenMeanwhileIsGivenUpForAnother(t *testing.T) {
	marks := t.TempDir()
	binary := script(t, `
if [ ! -e "$1/second" ]; then touch "$1/second"; echo "Address already in use"; exit 1; fi
exec sleep 600`)
	var ports []int
	p := testserver.Start(t, testserver.Spec{
		Binary: binary, Package: "none",
		Args: func(p testserver.Place) []string { ports = append(ports, p.Port); return []string{marks} },
		Ready: func(context.Context, testserver.Ask) error {
			if len(ports) < 2 {
				return errors.New("not yet")
			}
			return nil
		},
	})
	require.Len(t, ports, 2)
	require.True(t, strings.HasSuffix(p.Addr(), fmt.Sprint(":", ports[1])))
	require.Contains(t, p.Output(), "in use")
	require.DirExists(t, p.Dir())
}
