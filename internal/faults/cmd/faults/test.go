package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// timeout is what one process may take.
const timeout = "30m"

// killDelay is how long a process has to end after the first signal.
const killDelay = 10 * time.Second

// test builds the tests of a job and runs them, not by way of `go test`, which would not pass a signal on. What they
// print goes to log.
func test(ctx context.Context, root, dir string, j job, log *os.File) error {
	binary := filepath.Join(dir, strings.ReplaceAll(short(j.pkg), "/", "-")+".test")
	build := []string{"test", "-c", "-o", binary}
	if j.race {
		build = append(build, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(build, j.pkg)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	defer func() { _ = os.Remove(binary) }()
	shards := j.shards
	if shards == nil {
		shards = [][]string{nil}
	}
	errs := make([]error, len(shards))
	var wg sync.WaitGroup
	for i, shard := range shards {
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, binary, append(append([]string{"-test.v", "-test.timeout=" + timeout}, j.args...), shard...)...)
			cmd.Dir = filepath.Join(root, filepath.FromSlash(short(j.pkg))) // where `go test` runs it
			cmd.Stdout, cmd.Stderr = log, log
			cmd.Env = append(os.Environ(), "FULLDUPLEX_REQUIRE_SERVERS=1") // without witnesses nothing is proven
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			cmd.WaitDelay = killDelay
			errs[i] = cmd.Run()
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
