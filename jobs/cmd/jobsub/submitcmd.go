package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

// submitFlags are the options of submit alone.
type submitFlags struct {
	format   string
	maybe    string
	maxLine  int
	fromLine int64
	queue    string
	strict   bool
	dryRun   bool
}

func submitCommand(s std, code *int) *cobra.Command {
	w := &work{std: s, flags: flags{ids: "auto"}}
	var f submitFlags
	c := &cobra.Command{
		Use:     "submit --to TARGET [FILE|-]",
		Short:   "Submit the jobs of a file, or of standard input",
		Long:    submitHelp,
		Example: submitExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			err := w.prepare(c, &f, args)
			if f.dryRun {
				*code = w.plan(c.Context(), err)
			} else {
				*code = w.do(c.Context(), err)
			}
			return nil
		},
	}
	w.add(c, false)
	fs := c.Flags()
	fs.StringVar(&f.format, "format", "auto", "ndjson, lines, or auto: by the first line that is not blank")
	fs.IntVar(&f.maxLine, "max-line", 1<<20, "longest line in `BYTES`; a longer one is corrupt")
	fs.Int64Var(&f.fromLine, "from-line", 1, "skip the lines before `N`, which an earlier run dealt with")
	fs.StringVar(&f.queue, "queue", "default", "queue of jobs that name none")
	fs.BoolVar(&f.strict, "strict", false, "end at the first corrupt line")
	fs.BoolVar(&w.verify, "verify", false, "read the targets back and compare (takes about 40 bytes of memory per job)")
	fs.StringVar(&w.resume, "resume", "", "keep in `STATEFILE` what has been dealt with, and go on where the run before was ended, however that was")
	fs.StringVar(&f.maybe, "maybe", "list", "with --resume, what to do with jobs that a killed run may have submitted, that no id protects and that are not found in the target: list (as maybe, unsent) or resend (some may be there twice)")
	fs.BoolVar(&f.dryRun, "dry-run", false, "read and check everything, connect to nothing, and say what would be sent")
	w.soften(c, "max-line", "from-line")
	return c
}

// prepare fills w in from the command line and opens the input. It returns all faults at once.
func (w *work) prepare(c *cobra.Command, f *submitFlags, args []string) (err error) {
	to, faults := w.faults(c)
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	w.target, w.options = to, w.submitOptions()
	o := &w.options
	if o.Format, err = submit.ParseFormat(f.format); err != nil {
		bad("--format is %q: want auto, ndjson or lines", f.format)
	}
	if o.Format == submit.FormatLines && target.NeedJSON(w.to) {
		bad("--format is lines: want ndjson, for a target with body=job")
	}
	if o.ResendMaybe = f.maybe == "resend"; !o.ResendMaybe && f.maybe != "list" {
		bad("--maybe is %q: want list or resend", f.maybe)
	}
	if f.maxLine < 1 || f.maxLine > 256<<20 {
		bad("--max-line is %d: want 1 to %d", f.maxLine, 256<<20)
	}
	if f.fromLine < 1 {
		bad("--from-line is %d: want at least 1", f.fromLine)
	}
	if f.queue == "" {
		bad("--queue is empty: want a name")
	}
	if w.resume == "" && c.Flags().Changed("resume") {
		bad("--resume is empty: want the name of a file")
	}
	o.MaxLine, o.FromLine, o.Queue, o.Strict = f.maxLine, f.fromLine, f.queue, f.strict
	o.Formatted = w.formatted
	var name string
	if w.in, name, w.bytes, err = open(w.std.in, args); err != nil {
		faults = append(faults, err)
	}
	if len(args) > 0 && args[0] != "-" {
		w.input = args[0]
	}
	if w.resume != "" {
		faults = append(faults, w.resumable(c)...)
	}
	faults = append(faults, w.reportApart())
	o.IDPrefix = name + ":"
	w.settings = map[string]string{"format": f.format, "queue": f.queue, "ids": w.ids}
	if w.ids == "always" {
		w.settings["name"] = name // the ids are made of it
	}
	return errors.Join(faults...)
}

// resumable says what stands in the way of --resume.
func (w *work) resumable(c *cobra.Command) (faults []error) {
	if w.input == "" || !isFile(w.input) {
		faults = append(faults, errors.New("--resume needs a FILE: what comes through a pipe cannot be read again"))
	}
	if sameFile(w.resume, w.input) {
		faults = append(faults, fmt.Errorf("--resume is %s: that is the input, want a file of its own", w.resume))
	}
	if c.Flags().Changed("from-line") {
		faults = append(faults, errors.New("--resume and --from-line are both given: want one of them"))
	}
	for _, spec := range w.to {
		if strings.HasPrefix(spec, "embedded:") {
			faults = append(faults, errors.New("--resume with embedded: the server would be gone with the run"))
		}
	}
	return faults
}

// formatted tells how the input is read when that was decided by its first line, and stops what cannot be.
func (w *work) formatted(got submit.Format) error {
	if w.options.Format == submit.FormatAuto {
		if got == submit.FormatNDJSON {
			w.say("format: ndjson, since the first line begins with {")
		} else {
			w.say("format: lines, since the first line does not begin with {; each line is the payload of a job as it is")
		}
	}
	if got == submit.FormatLines && target.NeedJSON(w.to) {
		return target.ErrBody
	}
	return nil
}

// open returns the input, a name for it, and its size, 0 when that is unknown. With an error the input is empty.
func open(stdin io.Reader, args []string) (in io.Reader, name string, size int64, err error) {
	if len(args) == 0 || args[0] == "-" {
		return stdin, "stdin", 0, nil
	}
	none := strings.NewReader("")
	file, err := os.Open(args[0])
	if err != nil {
		return none, "", 0, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", args[0])
	}
	if err != nil {
		return none, "", 0, errors.Join(err, file.Close())
	}
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	return file, filepath.Base(args[0]), size, nil
}

// isFile says whether name can be read again and again. What is not there is said by open.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err != nil || info.Mode().IsRegular() || info.IsDir()
}
