package testserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RedisOptions of a redis-server; the zero value keeps nothing on disk.
type RedisOptions struct {
	Binary string   // default redis-server; any server of the same command line will do
	Args   []string // further arguments, such as "--appendonly", "yes"; they outrank the defaults
	Unix   bool     // listen on a unix socket too
	TLS    bool     // listen with TLS too; the test is skipped when the build cannot

	Password string // of the default user; Do and Witness use it
}

// Redis is a running redis-server.
type Redis struct {
	*Process
	socket    string
	password  string
	tlsPort   int
	clientTLS *tls.Config
}

// StartRedis runs a redis-server and returns when it answers PING with PONG.
func StartRedis(tb testing.TB, o RedisOptions) *Redis {
	tb.Helper()
	if o.Binary == "" {
		o.Binary = "redis-server"
	}
	r := &Redis{password: o.Password}
	extra := o.Args
	if o.Password != "" {
		extra = append([]string{"--requirepass", o.Password}, extra...)
	}
	if o.Unix {
		// Not in TempDir: a socket's path may have about a hundred bytes only.
		dir, err := os.MkdirTemp("", "fd")
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = os.RemoveAll(dir) })
		r.socket = filepath.Join(dir, "s")
		extra = append([]string{"--unixsocket", r.socket}, extra...)
	}
	if o.TLS {
		extra = append(r.tlsArgs(tb, o.Binary), extra...)
	}
	r.Process = Start(tb, Spec{
		Binary: o.Binary, Package: "redis-server", Ready: r.pong,
		Args: func(p Place) []string {
			return append([]string{
				"--port", strconv.Itoa(p.Port), "--bind", "127.0.0.1", "--dir", p.Dir, "--daemonize", "no",
				"--save", "", "--appendonly", "no", "--enable-debug-command", "local",
			}, extra...)
		},
	})
	return r
}

// pong is one attempt to get the answer of a server that serves, and that is the process we started.
func (r *Redis) pong(ctx context.Context, at Ask) error {
	w, err := r.dial(ctx, at.Addr)
	if err != nil {
		return err
	}
	defer w.Close()
	v, err := w.Do("PING")
	if err == nil && v != "PONG" {
		err = fmt.Errorf("PING answered %v", v)
	}
	if err != nil {
		return err
	}
	v, err = w.Do("INFO", "server")
	if err == nil && !strings.Contains(text(v), fmt.Sprintf("\r\nprocess_id:%d\r\n", at.Pid)) {
		err = fmt.Errorf("another server answers on %s", at.Addr)
	}
	return err
}

// dial makes a witness that may run commands.
func (r *Redis) dial(ctx context.Context, addr string) (*Witness, error) {
	w, err := NewWitness(ctx, "tcp", addr, nil)
	if err != nil || r.password == "" {
		return w, err
	}
	if _, err := w.Do("AUTH", r.password); err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, nil
}

// tlsArgs makes a certificate and asks a short-lived server whether it knows TLS.
func (r *Redis) tlsArgs(tb testing.TB, binary string) []string {
	tb.Helper()
	cert := NewCertificate(tb)
	r.clientTLS = cert.Client
	r.tlsPort = freePort(tb)
	args := []string{
		"--tls-port", strconv.Itoa(r.tlsPort), "--tls-cert-file", cert.CertFile, "--tls-key-file", cert.KeyFile,
		"--tls-ca-cert-file", cert.CertFile, "--tls-auth-clients", "no",
	}
	if why := tlsUnsupported(tb, binary, args); why != "" {
		Missing(tb, binary+" cannot serve TLS: "+why)
	}
	return args
}

// Witness is a new connection to the server; it is closed with the test.
func (r *Redis) Witness() *Witness {
	r.tb.Helper()
	w, err := r.dial(context.Background(), r.Addr())
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { _ = w.Close() })
	return w
}

// Do runs one command on a connection of its own; see Witness.Do. It may be called from any goroutine.
func (r *Redis) Do(args ...string) (any, error) {
	w, err := r.dial(context.Background(), r.Addr())
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.Do(args...)
}

// Text is Do for an answer that must come: numbers are given in decimal, null as the empty string.
func (r *Redis) Text(args ...string) string {
	r.tb.Helper()
	v, err := r.Do(args...)
	if err != nil {
		r.tb.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return text(v)
}

// Int is Text as a number; null is 0.
func (r *Redis) Int(args ...string) int {
	r.tb.Helper()
	s := r.Text(args...)
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		r.tb.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return n
}

// UnixSocket is the path of the unix socket, empty without RedisOptions.Unix.
func (r *Redis) UnixSocket() string { return r.socket }

// TLSAddr is host and port of the TLS listener, empty without RedisOptions.TLS.
func (r *Redis) TLSAddr() string {
	if r.tlsPort == 0 {
		return ""
	}
	return "127.0.0.1:" + strconv.Itoa(r.tlsPort)
}

// TLSConfig is a client configuration that trusts the server's certificate, nil without RedisOptions.TLS.
func (r *Redis) TLSConfig() *tls.Config {
	if r.clientTLS == nil {
		return nil
	}
	return r.clientTLS.Clone()
}
