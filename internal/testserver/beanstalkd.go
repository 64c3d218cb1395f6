package testserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"
)

// StartBeanstalkd runs a beanstalkd with further arguments and returns when it answers. It keeps jobs over a
// Restart when the arguments hold "-b", ".": the directory is the process's own.
func StartBeanstalkd(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return Start(tb, Spec{
		Binary: "beanstalkd", Package: "beanstalkd", Ready: usingDefault,
		Args: func(p Place) []string {
			return append([]string{"-l", "127.0.0.1", "-p", strconv.Itoa(p.Port)}, args...)
		},
	})
}

// usingDefault is one attempt to get an answer that changes nothing.
func usingDefault(ctx context.Context, at Ask) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("list-tube-used\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "USING default\r\n" {
		err = fmt.Errorf("list-tube-used answered %q", line)
	}
	return err
}
