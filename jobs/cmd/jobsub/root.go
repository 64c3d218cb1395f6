package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// run executes one command line and returns its exit code.
func run(args []string, s std) int {
	code := exitDone
	out := &sink{w: s.out}
	s.out = out
	root := &cobra.Command{
		Use:           "jobsub",
		Short:         "Submit jobs at full speed and account for every one",
		Long:          rootHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(submitCommand(s, &code), demoCommand(s, &code), benchCommand(s, &code))
	root.SetArgs(args)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.Execute()
	if err == nil && out.err != nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	if err != nil {
		fmt.Fprintf(s.err, "jobsub: %v\n", err)
		return max(code, exitFailed)
	}
	return code
}
