package procs

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/nullserver"
)

// The functions here say how many commands a server has run, so that a result can be compared with it: a client
// that was answered more often than the server worked is not fast, it is wrong.

// CountedNull is how many requests a null server has counted.
func CountedNull(addr string) (int64, error) {
	n, err := nullserver.Counted(addr)
	return n.Frames, err
}

// CountedRedis is how many SETs a redis-server has run.
func CountedRedis(addr string) (int64, error) {
	text, err := bulk(addr, "INFO commandstats\r\n", '$')
	if err != nil {
		return 0, err
	}
	return field(text, "cmdstat_set:calls=", ",")
}

// CountedBeanstalkd is how many jobs a beanstalkd was given.
func CountedBeanstalkd(addr string) (int64, error) {
	text, err := bulk(addr, "stats\r\n", 'O')
	if err != nil {
		return 0, err
	}
	return field(text, "cmd-put: ", "\n")
}

// bulk asks and returns a reply that begins with a line that ends in the length of the rest.
func bulk(addr, ask string, mark byte) (string, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, ask); err != nil {
		return "", err
	}
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimLeft(strings.TrimSpace(line), "$OK "))
	if err != nil || line[0] != mark {
		return "", fmt.Errorf("procs: %q was answered %q", strings.TrimSpace(ask), line)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return string(b), err
}

// field is the number between name and end; 0 when name is not there.
func field(text, name, end string) (int64, error) {
	_, after, found := strings.Cut(text, name)
	if !found {
		return 0, nil
	}
	digits, _, _ := strings.Cut(after, end)
	return strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
}
