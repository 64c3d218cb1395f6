package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fdengine/fullduplex/jobs/submit"
)

func submitCommand(s std, code *int) *cobra.Command {
	w := &work{std: s, flags: flags{ids: "auto"}}
	var (
		format   string
		maybe    string
		maxLine  int
		fromLine int64
		queue    string
		strict   bool
		dryRun   bool
	)
	c := &cobra.Command{
		Use:     "submit --to TARGET [FILE|-]",
		Short:   "Submit the jobs of a file, or of standard input",
		Long:    submitHelp,
		Example: submitExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			w.options = w.submitOptions()
			o := &w.options
			var err error
			if o.Format, err = submit.ParseFormat(format); err != nil {
				return err
			}
			switch maybe {
			case "list", "resend":
				o.ResendMaybe = maybe == "resend"
			default:
				return fmt.Errorf("--maybe is %q: want list or resend", maybe)
			}
			o.MaxLine, o.FromLine, o.Queue, o.Strict = maxLine, fromLine, queue, strict
			if len(args) > 0 {
				w.input = args[0]
			}
			if w.resume != "" {
				if len(args) == 0 || !isFile(args[0]) {
					return errors.New("--resume needs a FILE: what comes through a pipe cannot be read again")
				}
				w.path = args[0]
			}
			var name string
			if w.in, name, w.bytes, err = open(s.in, args); err != nil {
				return err
			}
			o.IDPrefix = name + ":"
			w.settings = map[string]string{"format": format, "queue": queue, "ids": w.ids}
			if w.ids == "always" {
				w.settings["name"] = name // the ids are made of it
			}
			if dryRun {
				*code, err = w.plan(c.Context())
				return err
			}
			*code, err = w.do(c.Context())
			return err
		},
	}
	w.add(c, false)
	fs := c.Flags()
	fs.StringVar(&format, "format", "auto", "ndjson, lines, or auto: by the first line that is not blank")
	fs.IntVar(&maxLine, "max-line", 1<<20, "longest line in `BYTES`; a longer one is corrupt")
	fs.Int64Var(&fromLine, "from-line", 1, "skip the lines before `N`, which an earlier run dealt with")
	fs.StringVar(&queue, "queue", "default", "queue of jobs that name none")
	fs.BoolVar(&strict, "strict", false, "end at the first corrupt line")
	fs.BoolVar(&w.verify, "verify", false, "read the targets back and compare (takes about 40 bytes of memory per job)")
	fs.StringVar(&w.resume, "resume", "", "keep in `STATEFILE` what has been dealt with, and go on where the run before was ended, however that was")
	fs.StringVar(&maybe, "maybe", "list", "with --resume, what to do with jobs that a killed run may have submitted and that no id protects: list (as maybe, unsent) or resend (some may be there twice)")
	fs.BoolVar(&dryRun, "dry-run", false, "read and check everything, connect to nothing, and say what would be sent")
	c.MarkFlagsMutuallyExclusive("resume", "from-line")
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
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", args[0])
	}
	if err != nil {
		return nil, "", 0, errors.Join(err, file.Close())
	}
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	return file, filepath.Base(args[0]), size, nil
}

// isFile says whether name can be read again and again.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
