package procs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
	"github.com/fdengine/fullduplex/bench/peers/nullserver"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// TestMain makes this test binary the programs that are started.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "server":
			s, err := nullserver.Listen("127.0.0.1:0")
			if err != nil {
				os.Exit(1)
			}
			fmt.Println(s.Addr())
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		case "mute":
			os.Exit(0)
		case clientArg:
			var s load.Spec
			if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil || s.Contender == "broken" {
				fmt.Fprintln(os.Stderr, "no cell")
				os.Exit(3)
			}
			_ = json.NewEncoder(os.Stdout).Encode(load.Result{Ops: int64(s.Callers)})
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

func need(t *testing.T, binary string) {
	t.Helper()
	if _, err := exec.LookPath(binary); err != nil {
		testserver.Missing(t, binary+" is not installed")
	}
}

func call(t *testing.T, name, addr string, n int) {
	t.Helper()
	who, err := contend.Find(name)
	require.NoError(t, err)
	c, err := who.Open(t.Context(), contend.Target{Addr: addr})
	require.NoError(t, err)
	defer c.Close()
	caller := c.Caller(0)
	for range n {
		require.NoError(t, caller.Call())
	}
}

func TestANullServerCountsAndEndsWhenItIsClosed(t *testing.T) {
	s, err := Null(os.Args[0], "server")
	require.NoError(t, err)
	call(t, "raw limit", s.Addr, 7)
	n, err := CountedNull(s.Addr)
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
	require.NoError(t, s.Close())
	_, err = CountedNull(s.Addr)
	require.Error(t, err)
}

func TestAServerThatSaysNoAddressIsAnError(t *testing.T) {
	_, err := Null(os.Args[0], "mute")
	require.ErrorContains(t, err, "no address")
}

func TestARedisServerCountsItsSets(t *testing.T) {
	need(t, "redis-server")
	s, err := Redis()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	n, err := CountedRedis(s.Addr)
	require.NoError(t, err)
	require.Zero(t, n)
	call(t, "fullduplex", s.Addr, 5)
	n, err = CountedRedis(s.Addr)
	require.NoError(t, err)
	require.EqualValues(t, 5, n)
}

func TestABeanstalkdCountsItsJobs(t *testing.T) {
	need(t, "beanstalkd")
	s, err := Beanstalkd()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	call(t, "raw puts", s.Addr, 5)
	n, err := CountedBeanstalkd(s.Addr)
	require.NoError(t, err)
	require.EqualValues(t, 5, n)
}

func TestAClientProcessGetsItsCellAndGivesItsResult(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Client(ctx, os.Args[0], load.Spec{Contender: "noop", Callers: 42})
	require.NoError(t, err)
	require.EqualValues(t, 42, r.Ops)
	_, err = Client(ctx, os.Args[0], load.Spec{Contender: "broken"})
	require.ErrorContains(t, err, "no cell")
}
