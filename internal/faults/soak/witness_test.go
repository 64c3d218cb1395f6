package soak

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// The servers are asked directly, not through their proxies, and by no code of the library.

// lines reads what a beanstalkd says.
type lines struct{ *bufio.Reader }

func newLines(c net.Conn) lines { return lines{bufio.NewReaderSize(c, 64<<10)} }

// body reads the data that a reply announces in its last word.
func (l lines) body(words []string) (string, error) {
	n, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return "", err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(l, b)
	return string(b[:n]), err
}

// job reads the reply to one reserve-with-timeout 0; an empty id means that there was no job.
func (l lines) job() (id, body string, err error) {
	line, err := l.ReadString('\n')
	if err != nil {
		return "", "", err
	}
	words := strings.Fields(line)
	switch {
	case len(words) == 1 && words[0] == "TIMED_OUT":
		return "", "", nil
	case len(words) != 3 || words[0] != "RESERVED":
		return "", "", fmt.Errorf("reserve was answered %q", line)
	}
	body, err = l.body(words)
	return words[1], body, err
}

// alone waits until nobody but the one who asks is connected to either server: what there was of old connections has
// been carried out then.
func (r *rig) alone() {
	r.t.Helper()
	w := r.cache.Witness()
	r.until("the redis-server to be left alone", func() bool {
		v, err := w.Do("INFO", "clients")
		require.NoError(r.t, err)
		return strings.Contains(v.(string), "connected_clients:1\r\n")
	})
	require.NoError(r.t, w.Close())

	c, err := net.Dial("tcp", r.tubes.Addr())
	require.NoError(r.t, err)
	defer c.Close()
	in := newLines(c)
	r.until("the beanstalkd to be left alone", func() bool {
		_, err := io.WriteString(c, "stats\r\n")
		require.NoError(r.t, err)
		line, err := in.ReadString('\n')
		require.NoError(r.t, err)
		text, err := in.body(strings.Fields(line))
		require.NoError(r.t, err)
		return strings.Contains(text, "\ncurrent-connections: 1\n")
	})
}

// entries reads a stream of the redis-server.
func (r *rig) readEntries(key string) (out []found) {
	r.t.Helper()
	v, err := r.cache.Do("XRANGE", key, "-", "+")
	require.NoError(r.t, err)
	for _, e := range v.([]any) {
		pair := e.([]any)
		fields := pair[1].([]any)
		require.Len(r.t, fields, 2)
		out = append(out, found{pair[0].(string), fields[1].(string)})
	}
	return out
}

// readList reads a list of the redis-server.
func (r *rig) readList(key string) (out []found) {
	r.t.Helper()
	v, err := r.cache.Do("LRANGE", key, "0", "-1")
	require.NoError(r.t, err)
	for _, e := range v.([]any) {
		out = append(out, found{"", e.(string)})
	}
	return out
}

// judge reads both servers back and returns all that is wrong.
func (r *rig) judge() (wrongs []error) {
	r.t.Helper()
	wrongs = append(wrongs, r.mu.wrongs...)
	for _, s := range r.entries {
		wrongs = append(wrongs, s.judge(r.readEntries(s.name))...)
	}
	for _, s := range r.lists {
		wrongs = append(wrongs, s.judge(r.readList(s.name))...)
	}
	for _, c := range r.counters {
		v, err := r.cache.Do("GET", c.key)
		require.NoError(r.t, err)
		n := 0
		if text, ok := v.(string); ok {
			n, err = strconv.Atoi(text)
			require.NoError(r.t, err)
		}
		wrongs = append(wrongs, c.judge(int64(n))...)
	}
	for _, c := range r.cells {
		v, err := r.cache.Do("GET", c.key)
		require.NoError(r.t, err)
		wrongs = append(wrongs, c.judge(v)...)
	}
	return append(wrongs, r.judgeJobs()...)
}

// judgeJobs sorts the jobs by their series. A beanstalkd that is killed may make a job of what it had half written: it
// is empty, nobody was told of it, and there is one at most for each kill.
func (r *rig) judgeJobs() (wrongs []error) {
	r.t.Helper()
	by, torn := map[string][]found{}, 0
	for _, f := range r.readJobs() {
		name, _, _ := strings.Cut(f.token, "#")
		if strings.Trim(f.token, "\x00") == "" {
			torn++
			continue
		}
		by[name] = append(by[name], f)
	}
	if kills := r.sites[tubeSite].kills; torn > kills {
		wrongs = append(wrongs, fmt.Errorf("%d torn jobs after %d kills", torn, kills))
	}
	for _, s := range r.jobs {
		wrongs = append(wrongs, s.judge(by[s.name])...)
		delete(by, s.name)
	}
	for name, list := range by {
		wrongs = append(wrongs, fmt.Errorf("%d foreign jobs of %q", len(list), name))
	}
	return wrongs
}
