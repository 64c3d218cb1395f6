// Command jobsub submits jobs from a file or from standard input to Redis streams and lists and to beanstalkd tubes,
// at full speed or at a given rate, and ends with an account of every one of them: answered, not sent, or maybe taken.
//
//	jobsub submit --to 'redis://127.0.0.1:6379/0?stream=jobs' jobs.ndjson
//	jobsub submit --to beanstalk://127.0.0.1:11300/mail --resume mail.state jobs.ndjson
//	jobsub demo
//	jobsub bench 'redis://127.0.0.1:6379/0?stream=bench'
//
// Exit codes: 0 every accepted job was taken by the server (and, with --verify, found there once); 1 anything
// else; 130 interrupted by SIGINT or SIGTERM.
package main

import (
	"io"
	"os"
)

const (
	exitDone        = 0
	exitFailed      = 1
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], std{os.Stdin, os.Stdout, os.Stderr})) }

// std is where a command reads and writes.
type std struct {
	in       io.Reader
	out, err io.Writer
}
