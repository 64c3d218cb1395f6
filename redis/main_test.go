package redis

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/proto/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ok = "+OK\r\n"

// serve reads requests from conn, keeps them as space-separated text, and answers each by script; a script that
// returns no answer closes the connection. It returns the requests when the connection has ended.
func serve(t *testing.T, conn net.Conn, script func(cmd string) string) []string {
	var log []string
	scan := resp.NewScanner(resp.Limits{})
	var buf []byte
	for {
		n, _, _, err := scan.Next(buf)
		if err != nil {
			t.Errorf("request: %v", err)
			return log
		}
		if n == 0 {
			chunk := make([]byte, 1024)
			got, err := conn.Read(chunk)
			if err != nil {
				return log
			}
			buf = append(buf, chunk[:got]...)
			continue
		}
		words, err := words(buf[:n])
		if err != nil {
			t.Errorf("request: %v", err)
			return log
		}
		buf = buf[n:]
		cmd := strings.Join(words, " ")
		log = append(log, cmd)
		reply := script(cmd)
		if reply == "" {
			_ = conn.Close()
			return log
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return log
		}
	}
}

// words decodes a request.
func words(frame []byte) ([]string, error) {
	r := resp.NewReader(frame)
	n, err := r.Array()
	if err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i := range out {
		if out[i], err = r.Text(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// encoded is what a command puts on the wire, as words, one line per request.
func encoded(t *testing.T, raw []byte) []string {
	var out []string
	r := resp.NewReader(raw)
	for r.More() {
		frame, err := r.Raw()
		require.NoError(t, err)
		w, err := words(frame)
		require.NoError(t, err)
		out = append(out, strings.Join(w, " "))
	}
	return out
}
