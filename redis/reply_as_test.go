package redis

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/proto/resp"
)

func TestRepliesOfManyValuesAreReadAsTheCallerWants(t *testing.T) {
	ints, err := SliceOf(answered(t, "*3\r\n:1\r\n$-1\r\n$1\r\n3\r\n"), (*resp.Reader).Int)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 0, 3}, ints)
	bools, err := SliceOf(answered(t, "~2\r\n#t\r\n:0\r\n"), (*resp.Reader).Bool)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, bools)
	for _, frame := range []string{"%2\r\n+a\r\n,1.5\r\n+b\r\n_\r\n", "*4\r\n+a\r\n$3\r\n1.5\r\n+b\r\n$-1\r\n"} {
		m, err := MapOf(answered(t, frame), (*resp.Reader).Float)
		require.NoError(t, err)
		require.Equal(t, map[string]float64{"a": 1.5, "b": 0}, m)
	}
	type entry struct {
		id     string
		fields map[string]string
	}
	entries, err := SliceOf(answered(t, "*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n+f\r\n+v\r\n"), func(r *resp.Reader) (e entry, err error) {
		if _, err = r.Array(); err != nil {
			return e, err
		}
		if e.id, err = r.Text(); err != nil {
			return e, err
		}
		n, err := r.Map()
		e.fields = map[string]string{}
		for range n {
			k, _ := r.Text()
			e.fields[k], err = r.Text()
		}
		return e, err
	})
	require.NoError(t, err)
	require.Equal(t, []entry{{"1-1", map[string]string{"f": "v"}}}, entries)
	n, err := As(answered(t, ":7\r\n"), (*resp.Reader).Int)
	require.NoError(t, err)
	require.EqualValues(t, 7, n)

	_, err = SliceOf(answered(t, "*1\r\n+x\r\n"), (*resp.Reader).Int)
	require.Error(t, err)
	_, err = SliceOf(answered(t, "*-1\r\n"), (*resp.Reader).Int)
	require.ErrorIs(t, err, Nil)
	_, err = MapOf(answered(t, "_\r\n"), (*resp.Reader).Int)
	require.ErrorIs(t, err, Nil)
	_, err = MapOf(answered(t, "%1\r\n*0\r\n:1\r\n"), (*resp.Reader).Int)
	require.Error(t, err)
	_, err = MapOf(answered(t, "%1\r\n+k\r\n-ERR x\r\n"), (*resp.Reader).Int)
	require.Equal(t, "ERR", codeOf(err))
	_, err = As(new(Cmd), (*resp.Reader).Int)
	require.ErrorIs(t, err, ErrNoReply)

	buf, err := answered(t, "$2\r\nhi\r\n").Append([]byte("<"))
	require.NoError(t, err)
	require.Equal(t, "<hi", string(buf))
	buf, err = answered(t, "$-1\r\n").Append([]byte("<"))
	require.ErrorIs(t, err, Nil)
	require.Equal(t, "<", string(buf))
}

func TestAPrintedCommandShowsNoArgument(t *testing.T) {
	auth := split("AUTH user hunter2")
	cmds := []any{auth, NewTx(auth, Set("k", "hunter2")), NewCmd("SET", "k", []byte("hunter2")), new(Cmd), NewCmd(strings.Repeat("\xff", 100), "hunter2")}
	var log bytes.Buffer
	for _, c := range cmds {
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "cmd", c)
		log.WriteString(fmt.Sprintf("%v %+v %#v %s %q %x %d", c, c, c, c, c, c, c))
	}
	require.NotContains(t, log.String(), "hunter2")
	require.NotContains(t, log.String(), fmt.Sprintf("%x", "hunter2"))
	require.Equal(t, "AUTH(2 arguments)", auth.String())
	require.Equal(t, "MULTI(2 commands)", fmt.Sprint(cmds[1]))
	require.Equal(t, "redis command without a name", new(Cmd).String())
}
