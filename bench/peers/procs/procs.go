// Package procs starts and ends the processes of a run: servers on 127.0.0.1, and one client process per cell, which
// is this program again. It knows when a server is ready and how to ask it what it has counted; it knows nothing of
// tables and rounds. Everything it started it ends, by its process id.
package procs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/load"
)

// patience bounds the wait for a server to start and for an answer of one.
const patience = 10 * time.Second

// Server is a running server.
type Server struct {
	Addr string
	cmd  *exec.Cmd
	done chan error
	in   io.Closer // of a null server: it ends when this is closed
	dir  string
}

// Close ends the process and waits for it.
func (s *Server) Close() error {
	if s.in != nil {
		_ = s.in.Close()
	} else {
		_ = s.cmd.Process.Kill() // fails only when it has ended by itself
	}
	select {
	case <-s.done:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// Null starts program, which must print its address and end with its standard input, as a counting server.
func Null(program string, args ...string) (*Server, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{cmd: cmd, in: in, done: make(chan error, 1)}
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { s.done <- cmd.Wait() }()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("procs: the null server said no address: %w", err), s.Close())
	}
	s.Addr = strings.TrimSpace(line)
	return s, nil
}

// Redis starts a redis-server that keeps nothing on disk.
func Redis() (*Server, error) {
	return real("redis-server", "PING\r\n", "+PONG\r\n", func(port, dir string) []string {
		return []string{
			"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no", "--save", "", "--appendonly", "no",
		}
	})
}

// Beanstalkd starts a beanstalkd without binlog.
func Beanstalkd() (*Server, error) {
	return real("beanstalkd", "list-tube-used\r\n", "USING default\r\n", func(port, _ string) []string {
		return []string{"-l", "127.0.0.1", "-p", port}
	})
}

// real starts an installed server and waits until it answers ask with want.
func real(binary, ask, want string, args func(port, dir string) []string) (*Server, error) {
	path, err := exec.LookPath(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	var output bytes.Buffer
	cmd := exec.Command(path, args(port, dir)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &output, &output
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", port), cmd: cmd, done: make(chan error, 1), dir: dir}
	go func() { s.done <- cmd.Wait() }()
	for end := time.Now().Add(patience); ; {
		got, err := exchange(s.Addr, ask, len(want))
		if err == nil && got == want {
			return s, nil
		}
		select {
		case err := <-s.done:
			s.done <- err
			return nil, errors.Join(fmt.Errorf("procs: %s ended: %v\n%s", binary, err, output.String()), s.Close())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("procs: %s is not ready after %v: %q, %w", binary, patience, got, err), s.Close())
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// exchange sends ask on a connection of its own and reads n bytes.
func exchange(addr, ask string, n int) (string, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, ask); err != nil {
		return "", err
	}
	buf := make([]byte, n)
	got, err := io.ReadFull(c, buf)
	return string(buf[:got]), err
}

// clientArg is the argument with which a program runs one cell.
const clientArg = "client"

// Client runs one cell in a process of its own. ctx ends it.
func Client(ctx context.Context, program string, s load.Spec) (r load.Result, err error) {
	in, err := json.Marshal(s)
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, program, clientArg)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	dieWithParent(cmd)
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("procs: %s: %w: %s", s.Contender, err, strings.TrimSpace(tail(errs.String(), 2000)))
	}
	return r, json.Unmarshal(out.Bytes(), &r)
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
