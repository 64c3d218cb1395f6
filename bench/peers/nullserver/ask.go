package nullserver

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	countedCommand = "FDCOUNTED" // answers requests and reads so far
	valueCommand   = "FDVALUE"   // FDVALUE n: what a GET is answered with has n bytes; 0: it is answered +OK
	holdCommand    = "FDHOLD"    // FDHOLD n: swallow n requests, then reset the connection that sent the last
	patience       = 10 * time.Second
)

// Count is what a server has seen.
type Count struct {
	Frames int64 // requests
	Reads  int64 // reads that brought any: Frames / Reads is how well the client batches
}

// Counted asks the server at addr. It blocks for at most ten seconds.
func Counted(addr string) (Count, error) {
	var n Count
	err := ask(addr, countedCommand, func(r *bufio.Reader) error {
		if _, err := r.ReadString('\n'); err != nil {
			return err
		}
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		frames, reads, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			return fmt.Errorf("nullserver: it counted %q", line)
		}
		if n.Frames, err = strconv.ParseInt(frames, 10, 64); err != nil {
			return err
		}
		n.Reads, err = strconv.ParseInt(reads, 10, 64)
		return err
	})
	return n, err
}

// Hold makes the server at addr leave the next n requests unanswered and then reset the connection that sent the
// last of them.
func Hold(addr string, n int) error {
	return ask(addr, holdCommand+" "+strconv.Itoa(n), func(r *bufio.Reader) error {
		line, err := r.ReadString('\n')
		if err == nil && line != okReply {
			err = fmt.Errorf("nullserver: a hold was answered %q", line)
		}
		return err
	})
}

// SetValue makes the server at addr answer a GET with n bytes "v"; with +OK again when n is 0.
func SetValue(addr string, n int) error {
	return ask(addr, valueCommand+" "+strconv.Itoa(n), func(r *bufio.Reader) error {
		line, err := r.ReadString('\n')
		if err == nil && line != okReply {
			err = fmt.Errorf("nullserver: a value was answered %q", line)
		}
		return err
	})
}

// ask sends one command on a connection of its own.
func ask(addr, command string, read func(*bufio.Reader) error) error {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	words := strings.Fields(command)
	req := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		req += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := c.Write([]byte(req)); err != nil {
		return err
	}
	return read(bufio.NewReader(c))
}
