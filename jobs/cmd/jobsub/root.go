package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// run executes one command line and returns its exit code.
func run(args []string, s std) int {
	code := exitDone
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
	if err := root.Execute(); err != nil {
		var told reported
		if !errors.As(err, &told) {
			fmt.Fprintf(s.err, "jobsub: %v\n", err)
		}
		return max(code, exitFailed)
	}
	return code
}

// reported is an error that the user has already been told of.
type reported struct{ error }
