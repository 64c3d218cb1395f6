package beanstalkd

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// A Reserve without a deadline sent itself again 65,535 times, about twice a second, when the server handed out a job
// whose body did not end where its announcement said; its caller learned nothing. After a body that stopped short it
// waited for ever.
func TestAJobThatNeverArrivesWholeEndsTheReserveAndIsNamed(t *testing.T) {
	for _, c := range []struct{ name, reply string }{
		{"no line end", "RESERVED 7 3\r\nabc\x00\x00"},
		{"longer", "RESERVED 7 3\r\nabcdef\r\n"},
		{"shorter, then silence", "RESERVED 7 3\r\nab"},
		{"announced, then silence", "RESERVED 7 3\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			torn := true
			bubble(t, func(r request) string {
				switch {
				case r.line == "delete 7":
					torn = false
				case strings.HasPrefix(r.line, "reserve") && torn:
					return c.reply
				case strings.HasPrefix(r.line, "reserve"):
					return "RESERVED 8 2\r\nok\r\n"
				}
				return normal
			}, func(t *testing.T, s *fake) {
				k := s.consumer(t, nil)
				defer func() { _ = k.Close(); <-k.Done() }()
				for range 2 { // the next one starts afresh
					before, start := s.ever("reserve"), time.Now()
					_, err := k.Reserve(bg)
					var e *TornError
					require.ErrorAs(t, err, &e)
					require.EqualValues(t, 7, e.ID)
					require.Equal(t, maxTorn, e.Times)
					require.Equal(t, maxTorn, s.ever("reserve")-before)
					require.Equal(t, carry.MaybeExecuted, fdengine.FateOf(err))
					require.Less(t, time.Since(start), 20*time.Second)
				}
				require.NoError(t, k.Do(bg, Delete(7)))
				j, err := k.Reserve(bg)
				require.NoError(t, err)
				require.Equal(t, "ok", string(j.Body))
			})
		})
	}
}

// Two torn jobs may take turns when several consumers meet them.
func TestDifferentTornJobsInARowEndTheReserveToo(t *testing.T) {
	n := 0
	bubble(t, func(r request) string {
		if strings.HasPrefix(r.line, "reserve") {
			n++
			return []string{"RESERVED 7 3\r\nabc\x00\x00", "RESERVED 8 3\r\nabc\x00\x00"}[n%2]
		}
		return normal
	}, func(t *testing.T, s *fake) {
		k := s.consumer(t, nil)
		defer func() { _ = k.Close(); <-k.Done() }()
		_, err := k.ReserveWithTimeout(bg, time.Minute)
		var e *TornError
		require.ErrorAs(t, err, &e)
		require.EqualValues(t, 8, e.ID)
		require.Equal(t, maxTorn, n)
	})
}

// A connection that dies within a body is not the job's fault: the same Reserve goes on. Nor does a Reserve end that
// never was handed anything.
func TestAReserveOutlivesConnectionsThatDieWithinABodyOrBefore(t *testing.T) {
	n := 0
	bubble(t, func(r request) string {
		if !strings.HasPrefix(r.line, "reserve") {
			return normal
		}
		switch n++; {
		case n < maxTorn:
			return "RESERVED 7 3\r\nabc\x00\x00"
		case n < 4*maxTorn:
			return drop
		}
		return "RESERVED 7 3\r\nabc\r\n"
	}, func(t *testing.T, s *fake) {
		k := s.consumer(t, nil)
		defer func() { _ = k.Close(); <-k.Done() }()
		j, err := k.Reserve(bg)
		require.NoError(t, err)
		require.Equal(t, "abc", string(j.Body))
		require.Equal(t, 4*maxTorn, n)
	})
}

// The end of a job's record in the binlog is overwritten with zeros while the server is down, as if it had died while
// it wrote.
func TestATornJobOfARealBinlogIsNamedAndCanBeDeleted(t *testing.T) {
	srv := testserver.StartBeanstalkd(t, "-b", ".", "-f", "0")
	c := realClient(t, srv.Addr(), nil)
	torn, err := c.Put(bg, &Put{Body: []byte("the torn one")})
	require.NoError(t, err)
	_, err = c.Put(bg, &Put{Body: []byte("the whole one")})
	require.NoError(t, err)
	srv.Kill9()
	hit := 0
	require.NoError(t, filepath.WalkDir(srv.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "binlog") {
			return err
		}
		b, err := os.ReadFile(path)
		if i := bytes.Index(b, []byte("the torn one\r\n")); err == nil && i >= 0 {
			hit++
			clear(b[i+4 : i+14])
			err = os.WriteFile(path, b, 0o600)
		}
		return err
	}))
	require.Equal(t, 1, hit)
	srv.Restart()

	k, err := NewConsumer(Options{Addr: srv.Addr()})
	require.NoError(t, err)
	defer func() { _ = k.Close(); <-k.Done() }()
	ctx, cancel := context.WithTimeout(bg, 30*time.Second)
	defer cancel()
	_, err = k.Reserve(ctx)
	var e *TornError
	require.ErrorAs(t, err, &e)
	require.Equal(t, torn, e.ID)
	require.NoError(t, k.Do(ctx, Delete(e.ID)))
	j, err := k.Reserve(ctx)
	require.NoError(t, err)
	require.Equal(t, "the whole one", string(j.Body))
	require.NoError(t, j.Delete(ctx))
}
