package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fdengine/fullduplex/jobs/submit"
)

func submitCommand(s std, code *int) *cobra.Command {
	var (
		f        flags
		format   string
		maxLine  int
		fromLine int64
		queue    string
		strict   bool
		verify   bool
	)
	c := &cobra.Command{
		Use:   "submit --to TARGET [FILE|-]",
		Short: "Submit the jobs of a file, or of standard input",
		Long: `Submit the jobs of a file, or of standard input.

The input is NDJSON, one object per line with the fields payload (any JSON, sent as it is written), id (string
or number; default: file name and line) and queue (string), or plain lines, each the payload of one job. Lines
end with LF or CRLF; blank lines are no jobs. A line that is no job is reported with its number and skipped.

The last line of output is the account. lost and duplicated are known only with --verify, which reads the
stream back. Exit codes: 0 every accepted job was taken by the server (and, with --verify, none is lost, and
without --retries none is there twice); 1 anything else; 130 interrupted.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o := f.submitOptions()
			var err error
			if o.Format, err = submit.ParseFormat(format); err != nil {
				return err
			}
			o.MaxLine, o.FromLine, o.Queue, o.Strict = maxLine, fromLine, queue, strict
			in, name, size, err := open(s.in, args)
			if err != nil {
				return err
			}
			o.IDPrefix = name + ":"
			w := &work{std: s, flags: f, options: o, in: in, bytes: size, verify: verify}
			*code, err = w.do(c.Context())
			return err
		},
	}
	f.add(c)
	fs := c.Flags()
	fs.StringVar(&format, "format", "auto", "ndjson, lines, or auto: by the first line that is not blank")
	fs.IntVar(&maxLine, "max-line", 1<<20, "longest line in `BYTES`; a longer one is corrupt")
	fs.Int64Var(&fromLine, "from-line", 1, "skip the lines before `N`, which an earlier run dealt with")
	fs.StringVar(&queue, "queue", "default", "queue of jobs that name none")
	fs.BoolVar(&strict, "strict", false, "end at the first corrupt line")
	fs.BoolVar(&verify, "verify", false, "read the stream back and compare (takes about 40 bytes of memory per job)")
	_ = c.MarkFlagRequired("to") // cannot fail: the flag is there
	return c
}

// open returns the input, a name for it, and its size, 0 when that is unknown.
func open(stdin io.Reader, args []string) (in io.Reader, name string, size int64, err error) {
	if len(args) == 0 || args[0] == "-" {
		return stdin, "stdin", 0, nil
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, "", 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, "", 0, err
	}
	if info.IsDir() {
		return nil, "", 0, fmt.Errorf("%s is a directory", args[0])
	}
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	return file, filepath.Base(args[0]), size, nil
}
