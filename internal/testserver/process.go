// Package testserver starts real servers on 127.0.0.1 for tests, kills, stops and restarts them, and asks them
// what they know through a small client of its own, so that the witness of a test does not depend on the code
// under test. It knows how a process is run and when it is ready; it knows nothing of the library. For tests only.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds the wait until a started server answers; it only decides when a broken one is given up.
const startTimeout = 20 * time.Second

// pollEvery is how often a server that is starting is asked.
const pollEvery = 3 * time.Millisecond

// maxPort leaves room for the second port of a redis cluster node, 10,000 above the first.
const maxPort = 65535 - 10000

// Spec says how a server is run.
type Spec struct {
	Binary  string                                  // name or path; looked up in PATH
	Package string                                  // the Debian package that has it, for the message when it is missing
	Args    func(p Place) []string                  // its command line
	Ready   func(ctx context.Context, at Ask) error // one attempt: nil once it serves
}

// Ask is whom Ready asks. A server that can name its process should be compared with Pid: the port may belong to
// a stranger.
type Ask struct {
	Addr string
	Pid  int
}

// Place is where a server runs.
type Place struct {
	Port int    // on 127.0.0.1
	Dir  string // its working directory, kept over restarts
}

// Process is one server. Its methods belong to the goroutine of the test and fail the test when they cannot do
// what they say. The process ends with the test.
type Process struct {
	tb     testing.TB
	spec   Spec
	path   string
	place  Place
	cmd    *exec.Cmd
	exited chan struct{} // closed when the running process has been waited for
}

// Start runs a server on a free port and returns when it is ready. Without the binary the test is skipped, or
// fails when FULLDUPLEX_REQUIRE_SERVERS is 1.
func Start(tb testing.TB, s Spec) *Process {
	tb.Helper()
	path, err := exec.LookPath(s.Binary)
	if err != nil {
		Missing(tb, fmt.Sprintf("%s is not installed (Debian package %s)", s.Binary, s.Package))
	}
	p := &Process{tb: tb, spec: s, path: path, place: Place{Dir: tb.TempDir()}}
	tb.Cleanup(p.end)
	// The port is free when it is chosen, and another process may take it before the server binds it.
	for range 5 {
		p.place.Port = freePort(tb)
		if err = p.run(); err == nil {
			return p
		}
		if !strings.Contains(p.Output(), "in use") {
			break
		}
	}
	tb.Fatalf("%s: %v\n%s", s.Binary, err, p.Output())
	return nil
}

// Missing skips the test for want of a server, or fails it when FULLDUPLEX_REQUIRE_SERVERS is 1.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("FULLDUPLEX_REQUIRE_SERVERS") == "1" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}

func freePort(tb testing.TB) int {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port <= maxPort {
			return port
		}
	}
	tb.Fatal("no free port")
	return 0
}

// Addr is host and port.
func (p *Process) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.place.Port)) }

// Dir is the working directory.
func (p *Process) Dir() string { return p.place.Dir }

// Pid is the process id, 0 when it does not run.
func (p *Process) Pid() int {
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Output is what the server printed, over all its starts.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *Process) logPath() string { return filepath.Join(p.place.Dir, "output.log") }

// run starts the process and waits until it is ready or has ended.
func (p *Process) run() error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.path, p.spec.Args(p.place)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.place.Dir, log, log
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	p.cmd, p.exited = cmd, exited

	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := p.spec.Ready(ctx, Ask{Addr: p.Addr(), Pid: cmd.Process.Pid})
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			p.cmd = nil
			return errors.New("it ended while starting")
		case <-ctx.Done():
			p.end()
			return fmt.Errorf("not ready in %v: %w", startTimeout, err)
		case <-tick.C:
		}
	}
}

// Kill9 ends the process without warning and returns when it is gone, also when it was stopped. Nothing happens
// when it does not run.
func (p *Process) Kill9() {
	p.tb.Helper()
	p.end()
}

func (p *Process) end() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only when it has ended by itself
	<-p.exited
	p.cmd = nil
}

// Restart starts the server again on the same port and directory, after a Kill9 when it still runs, and returns
// when it is ready.
func (p *Process) Restart() {
	p.tb.Helper()
	p.end()
	if err := p.run(); err != nil {
		p.tb.Fatalf("restart of %s: %v\n%s", p.spec.Binary, err, p.Output())
	}
}

// Stop halts the process (SIGSTOP) and returns when it has halted: its sockets stay open and the kernel goes on
// accepting connections and bytes for it.
func (p *Process) Stop() {
	p.tb.Helper()
	p.signal(stopSignal)
	p.awaitHalted()
}

// Cont lets a stopped process go on (SIGCONT).
func (p *Process) Cont() {
	p.tb.Helper()
	p.signal(contSignal)
}

func (p *Process) signal(sig os.Signal) {
	p.tb.Helper()
	if p.cmd == nil {
		p.tb.Fatalf("%s does not run", p.spec.Binary)
	}
	if sig == nil {
		p.tb.Skip("this system cannot stop a process")
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.tb.Fatalf("signal %v to %s: %v", sig, p.spec.Binary, err)
	}
}

// awaitHalted waits until /proc says the process has stopped; where there is no /proc the signal must do.
func (p *Process) awaitHalted() {
	p.tb.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); <-tick.C {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		if err != nil {
			return
		}
		// "pid (name) state ..."; the name may hold anything, so look behind its last parenthesis.
		if _, state, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " "); ok &&
			strings.HasPrefix(state, "T") {
			return
		}
	}
	p.tb.Fatalf("%s did not halt", p.spec.Binary)
}
