package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/spf13/cobra"

	"github.com/fdengine/fullduplex/jobs/submit"
)

func demoCommand(s std, code *int) *cobra.Command {
	f := flags{to: []string{"embedded:"}, ids: "auto"}
	var (
		jobs int
		root string
	)
	c := &cobra.Command{
		Use:   "demo",
		Short: "Submit jobs made of the files of the Go installation, read them all back and compare",
		Long: `Submit jobs made of the files of the Go installation, read them all back and compare.

Each file below GOROOT becomes a job with its path, size and hash; the list is repeated under new ids until
there are enough jobs. They go to a server inside this process unless --to names another. Afterwards every job
is read back, and id, queue and payload are compared.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w := &work{std: s, flags: f, in: strings.NewReader("")}
			to, faults := w.faults(c)
			if jobs < 1 {
				faults = append(faults, fmt.Errorf("--jobs is %d: want at least 1", jobs))
			}
			var err error
			if root == "" {
				root, err = goroot(c.Context())
				faults = append(faults, err)
			}
			var files []fileInfo
			if root != "" {
				files, err = survey(root)
				faults = append(faults, err)
			}
			if err := errors.Join(faults...); err != nil {
				*code = w.do(c.Context(), err)
				return nil
			}
			fmt.Fprintf(s.err, "%d files below %s become %d jobs for %s\n", len(files), root, jobs, strings.Join(f.shown(), " "))
			w.target, w.options = to, f.submitOptions()
			w.options.Format = submit.FormatNDJSON
			in, out := io.Pipe()
			go func() { _ = out.CloseWithError(writeJobs(out, files, jobs)) }() // ends when the reader closes in
			w.in, w.jobs, w.verify = in, int64(jobs), true
			w.exact = len(f.to) == 1 && f.to[0] == "embedded:"
			*code = w.do(c.Context(), nil)
			return nil
		},
	}
	f.add(c, false)
	c.Flags().IntVar(&jobs, "jobs", 100_000, "how many jobs")
	f.soften(c, "jobs")
	c.Flags().StringVar(&root, "root", "", "make the jobs of the files below `DIR` instead of GOROOT")
	return c
}

// goroot asks the go command where it lives.
func goroot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w (use --root DIR)", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// fileInfo is the payload of a demo job.
type fileInfo struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Hash string `json:"xxh64"`
}

// survey describes each regular file below root. Links to directories directly below root are followed, since
// some distributions keep parts of GOROOT elsewhere.
func survey(root string) ([]fileInfo, error) {
	tops, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var files []fileInfo
	for _, top := range tops {
		start, err := filepath.EvalSymlinks(filepath.Join(root, top.Name()))
		if err != nil {
			continue // a dangling link is no file
		}
		err = filepath.WalkDir(start, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			hash, size, err := hashFile(path)
			rel, _ := filepath.Rel(start, path) // path is below start
			files = append(files, fileInfo{filepath.ToSlash(filepath.Join(top.Name(), rel)), size, fmt.Sprintf("%016x", hash)})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no files below " + root)
	}
	return files, nil
}

func hashFile(path string) (sum uint64, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	d := xxhash.New()
	size, err = io.Copy(d, f)
	return d.Sum64(), size, err
}

// writeJobs writes n jobs as NDJSON, walking files again and again.
func writeJobs(out io.Writer, files []fileInfo, n int) error {
	payloads := make([][]byte, len(files))
	for i := range files {
		p, err := json.Marshal(files[i])
		if err != nil {
			return err
		}
		payloads[i] = p
	}
	w := bufio.NewWriterSize(out, 64<<10)
	for i := range n {
		_, err := fmt.Fprintf(w, "{\"id\":\"demo-%08d\",\"queue\":\"files\",\"payload\":%s}\n", i+1, payloads[i%len(payloads)])
		if err != nil {
			return err
		}
	}
	return w.Flush()
}
