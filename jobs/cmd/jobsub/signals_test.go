package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
)

const (
	testWait = 30 * time.Second
	testPoll = 5 * time.Millisecond
)

// built is the jobsub binary, running.
type built struct {
	*exec.Cmd
	in   *os.File
	out  bytes.Buffer
	errs *bufio.Reader
}

// binary builds jobsub once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "jobsub")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	name := filepath.Join(dir, "jobsub")
	if out, err := exec.Command("go", "build", "-o", name, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return name, nil
})

var binaryDir string // removed by TestMain

// start runs the binary. It is ended with the test.
func start(t *testing.T, args ...string) *built {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted there")
	}
	name, err := binary()
	require.NoError(t, err)
	in, pipe, err := os.Pipe()
	require.NoError(t, err)
	b := &built{Cmd: exec.Command(name, args...), in: pipe}
	b.Stdin, b.Stdout = in, &b.out
	errs, err := b.StderrPipe()
	require.NoError(t, err)
	b.errs = bufio.NewReader(errs)
	require.NoError(t, b.Start())
	t.Cleanup(func() {
		if b.ProcessState == nil {
			_ = b.Process.Kill() // fails only when it has ended by itself
			_ = b.Wait()
		}
		_ = in.Close()
		_ = pipe.Close()
	})
	return b
}

// await reads standard error up to a line with text, and returns all of it so far.
func (b *built) await(t *testing.T, text string) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := b.errs.ReadString('\n')
		all.WriteString(line)
		require.NoError(t, err, "waiting for %q in %q", text, all.String())
		if strings.Contains(line, text) {
			return all.String()
		}
	}
}

// end waits for the process and returns its exit code and the rest of standard error.
func (b *built) end(t *testing.T) (int, string) {
	t.Helper()
	var rest bytes.Buffer
	_, err := rest.ReadFrom(b.errs)
	require.NoError(t, err)
	_ = b.Wait() // its exit code says more
	return b.ProcessState.ExitCode(), rest.String()
}

// Covers: S3-24
func TestAnInterruptDrainsAccountsAndExits130(t *testing.T) {
	for name, sig := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			b := start(t, "submit", "--to", "embedded:", "--rate", "400", "--quiet")
			// More than pipe and read buffers hold: when all is written, many jobs are on their way.
			line := strings.Repeat("x", 499) + "\n"
			for range 1000 {
				_, err := b.in.WriteString(line)
				require.NoError(t, err)
			}
			require.NoError(t, b.Process.Signal(sig))
			code, errs := b.end(t)
			require.Equal(t, exitInterrupted, code, errs)
			var accepted, answered, notSent, maybe int
			_, err := fmt.Sscanf(lastLine(b.out.String()), "account: accepted=%d answered=%d not_sent=%d maybe=%d", &accepted, &answered, &notSent, &maybe)
			require.NoError(t, err, b.out.String())
			require.Positive(t, accepted)
			require.Less(t, accepted, 1000, "the rest is still in the pipe")
			require.Equal(t, accepted, answered, "a server that answers leaves nothing in doubt")
			require.Contains(t, errs, fmt.Sprintf("--from-line %d", accepted+1))
		})
	}
}

func TestAnInterruptWithASilentServerEndsWithinItsBound(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := start(t, "submit", "--to", "redis://"+s.Addr(), "--drain", "300ms", "--quiet")
	_, err := b.in.WriteString("one\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Int("XLEN", "jobs") == 1 }, testWait, testPoll)
	s.Stop()
	_, err = b.in.WriteString("two\nthree\n")
	require.NoError(t, err)
	begin := time.Now()
	require.NoError(t, b.Process.Signal(os.Interrupt))
	code, errs := b.end(t)
	s.Cont()
	require.Equal(t, exitInterrupted, code, errs)
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Regexp(t, accountLine, lastLine(b.out.String()))
}

func TestASecondInterruptEndsAtOnceWithAnAccount(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := start(t, "submit", "--to", "redis://"+s.Addr(), "--drain", "1h")
	_, err := b.in.WriteString("one\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Int("XLEN", "jobs") == 1 }, testWait, testPoll)
	s.Stop()
	_, err = b.in.WriteString("two\n")
	require.NoError(t, err)
	b.await(t, "in_flight=1")
	require.NoError(t, b.Process.Signal(os.Interrupt))
	b.await(t, "once more ends at once")
	require.NoError(t, b.Process.Signal(os.Interrupt))
	code, errs := b.end(t)
	s.Cont()
	require.Equal(t, exitInterrupted, code)
	require.Regexp(t, accountLine, lastLine(errs))
}
