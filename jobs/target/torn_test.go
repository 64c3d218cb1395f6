package target_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/jobs/target"
)

// tornServer speaks as much of beanstalkd as a read-back needs. Of the jobs put to it, that of one id has lost its
// body and the line end behind.
type tornServer struct {
	torn int
	gone int // and another one was taken away
	mu   struct {
		sync.Mutex
		id int
	}
}

func (s *tornServer) put() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.id++
	return s.mu.id
}

func (s *tornServer) serve(c net.Conn) {
	defer c.Close()
	in, tube := bufio.NewReader(c), "default"
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		w := strings.Fields(line)
		answer := "UNKNOWN_COMMAND\r\n"
		switch w[0] {
		case "use":
			tube = w[1]
			answer = "USING " + tube + "\r\n"
		case "list-tube-used":
			answer = "USING " + tube + "\r\n"
		case "watch":
			answer = "WATCHING 1\r\n"
		case "stats":
			answer = "OK 29\r\n---\nmax-job-size: 65535\nx: 12\r\n"
		case "delete":
			answer = "DELETED\r\n"
		case "put":
			var n int
			_, _ = fmt.Sscan(w[4], &n)
			_, _ = io.CopyN(io.Discard, in, int64(n)+2)
			answer = fmt.Sprintf("INSERTED %d\r\n", s.put())
		case "peek":
			answer = "FOUND " + w[1] + " 1\r\nx\r\n"
			switch w[1] {
			case fmt.Sprint(s.gone):
				answer = "NOT_FOUND\r\n"
			case fmt.Sprint(s.torn):
				answer = "FOUND " + w[1] + " 8\r\n" + strings.Repeat("\x00", 10)
			}
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// A beanstalkd that had been killed while it wrote its binlog came back with a job of zeros, without a line end
// behind it. Looking at it broke the connection, and with it the whole read-back.
func TestAJobThatIsTornInTheBinlogIsShownAsNobodysAndTheRestIsReadBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.Close()
	s := &tornServer{torn: 7, gone: 9}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(c) })
		}
	})
	to, err := target.Open(context.Background(), []string{"beanstalk://" + l.Addr().String() + "/t"}, target.Options{ReadBack: true})
	require.NoError(t, err)
	a := submitted(t, to, numbered(20)) // ids 2 to 21
	require.EqualValues(t, 20, a.Answered)
	whole, torn := 0, 0
	require.NoError(t, to.ReadBack(context.Background(), func(_, _, payload []byte) {
		if string(payload) == "x" {
			whole++
		} else {
			torn++
		}
	}))
	require.Equal(t, []int{18, 1}, []int{whole, torn})
	require.NoError(t, to.Close())
}
