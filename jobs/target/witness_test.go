package target_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/target"
)

func redisURL(r *testserver.Redis, kind, name string) string {
	return "redis://" + r.Addr() + "/0?" + kind + "=" + name
}

func streamURL(r *testserver.Redis, name string) string { return redisURL(r, "stream", name) }
func listURL(r *testserver.Redis, name string) string   { return redisURL(r, "list", name) }

func tubeURL(p *testserver.Process, tube string) string {
	return "beanstalk://" + p.Addr() + "/" + tube
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "job %d\n", i)
	}
	return b.String()
}

// streamJobs counts the payloads of a stream, as the server shows them.
func streamJobs(t *testing.T, r *testserver.Redis, name string) map[string]int {
	t.Helper()
	jobs := map[string]int{}
	for after := "-"; ; {
		v, err := r.Do("XRANGE", name, after, "+", "COUNT", "5000")
		require.NoError(t, err)
		entries := v.([]any)
		for _, e := range entries {
			parts := e.([]any)
			after = "(" + parts[0].(string)
			fields := parts[1].([]any)
			require.Equal(t, []any{"id", "queue", "payload"}, []any{fields[0], fields[2], fields[4]})
			jobs[fields[5].(string)]++
		}
		if len(entries) == 0 {
			return jobs
		}
	}
}

// listJobs counts the elements of a list.
func listJobs(t *testing.T, r *testserver.Redis, name string) map[string]int {
	t.Helper()
	v, err := r.Do("LRANGE", name, "0", "-1")
	require.NoError(t, err)
	jobs := map[string]int{}
	for _, e := range v.([]any) {
		jobs[e.(string)]++
	}
	return jobs
}

func listOrStreamJobs(t *testing.T, r *testserver.Redis, kind, name string) map[string]int {
	t.Helper()
	if kind == "list" {
		return listJobs(t, r, name)
	}
	return streamJobs(t, r, name)
}

// tubeJobs reserves everything in a tube, over a plain connection, and counts it.
func tubeJobs(t *testing.T, p *testserver.Process, tube string) map[string]int {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	in := bufio.NewReader(c)
	line := func() string {
		s, err := in.ReadString('\n')
		require.NoError(t, err)
		return s
	}
	_, err = fmt.Fprintf(c, "watch %s\r\nignore default\r\n", tube)
	require.NoError(t, err)
	line()
	require.Equal(t, "WATCHING 1\r\n", line())
	const atOnce = 200
	jobs := map[string]int{}
	for more := true; more; {
		_, err = io.WriteString(c, strings.Repeat("reserve-with-timeout 0\r\n", atOnce))
		require.NoError(t, err)
		for range atOnce {
			var id, n int
			head := line()
			if head == "TIMED_OUT\r\n" {
				more = false
				continue
			}
			_, err := fmt.Sscanf(head, "RESERVED %d %d\r\n", &id, &n)
			require.NoError(t, err, head)
			b := make([]byte, n+2)
			_, err = io.ReadFull(in, b)
			require.NoError(t, err)
			jobs[string(b[:n])]++
		}
	}
	return jobs
}

// open opens a target that is closed with the test.
func open(t *testing.T, spec string, o target.Options) target.Target {
	t.Helper()
	return openAll(t, []string{spec}, o)
}

func openAll(t *testing.T, specs []string, o target.Options) target.Target {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	to, err := target.Open(ctx, specs, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	return to
}

// escaped makes a name fit for a URL.
func escaped(s string) string { return url.QueryEscape(s) }
