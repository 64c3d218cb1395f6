package redis

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/pool"
)

func TestAllFaultsOfOptionsAreReportedAtOnceAndNoPassword(t *testing.T) {
	o := Options{
		Addr: "nohost", Password: "hunter2", Protocol: 4, DB: -1, ClientName: "a b", Lanes: 65,
		Credentials: func(context.Context) (string, string, error) { return "", "", nil },
		Engine: fdengine.Options{
			Protocol: func() fdengine.Protocol { return nil }, Leaser: (*pool.Pool)(nil), Ping: func() fdengine.Command { return nil },
			OnPush: func([]byte) {},
		},
	}
	err := o.Validate()
	for _, word := range []string{
		"Protocol is 4", "DB is -1", "' '", "Lanes is 65, it must be 1 to 64", "Credentials", "Engine.Protocol", "Engine.Leaser", "Engine.Ping", "Engine.OnPush", `"nohost"`,
	} {
		require.ErrorContains(t, err, word)
	}
	require.NotContains(t, err.Error(), "hunter2")
	_, newErr := New(o)
	require.Equal(t, err.Error(), newErr.Error())
	require.NoError(t, Options{Addr: "h:1", Password: "p", Lanes: 64}.Validate())
	require.ErrorContains(t, Options{Addr: "h:1", Lanes: -1}.Validate(), "Lanes is -1")
}

func TestAPasswordIsInNoPrintedFormOfOptions(t *testing.T) {
	o := Options{Addr: "h:1", Username: "u", Password: "hunter2", TLS: &tls.Config{}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "options", o, "pointer", &o)
	log.WriteString(fmt.Sprint(o, &o) + fmt.Sprintf("%v %+v %#v %s %q %d %x", o, o, o, o, o, o, struct{ O Options }{o}))
	j, err := json.Marshal(struct{ Username, Password any }{o.Username, nil})
	require.NoError(t, err)
	log.Write(j)
	require.NotContains(t, log.String(), "hunter2")
	require.NotContains(t, log.String(), fmt.Sprintf("%x", "hunter2"))
	require.Contains(t, o.String(), "user u")
}

// Covers: S1-25
func TestEveryOptionReachesThePool(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	o := Options{
		Network: "unix", Addr: "/s", TLS: &tls.Config{ServerName: "x"}, DialTimeout: 1, KeepAlive: 2, UserTimeout: 3, MaxAge: 4, DialFunc: dial,
		Engine: fdengine.Options{BackoffMin: 5, BackoffMax: 6},
	}
	p := o.pool()
	require.Equal(t, []any{"unix", "/s", o.TLS, time.Duration(1), time.Duration(2), time.Duration(3), time.Duration(4), time.Duration(5), time.Duration(6)},
		[]any{p.Network, p.Addr, p.TLS, p.DialTimeout, p.KeepAlive, p.UserTimeout, p.MaxAge, p.BackoffMin, p.BackoffMax})
	require.NotNil(t, p.DialFunc)
	require.NotNil(t, p.Handshake)
	require.Nil(t, p.Credentials)
	o.Username, o.Password = "u", "p"
	u, pw, err := o.pool().Credentials(context.Background())
	require.NoError(t, err)
	require.Equal(t, "u p", u+" "+pw)
	calls := 0
	o.Username, o.Password = "", ""
	o.Credentials = func(context.Context) (string, string, error) { calls++; return "x", "y", nil }
	_, _, _ = o.pool().Credentials(context.Background())
	require.Equal(t, 1, calls)
}

func TestURLsAreReadAndWhatIsNotUnderstoodIsAnErrorWithoutThePassword(t *testing.T) {
	for in, want := range map[string]Options{
		"redis://h":                                {Network: "tcp", Addr: "h:6379"},
		"redis://h:7000/3":                         {Network: "tcp", Addr: "h:7000", DB: 3},
		"redis://:p%40ss@h":                        {Network: "tcp", Addr: "h:6379", Password: "p@ss"},
		"redis://u:p@[::1]:7000?db=2&protocol=2":   {Network: "tcp", Addr: "[::1]:7000", Username: "u", Password: "p", DB: 2, Protocol: 2},
		"redis://p@h/?client_name=me":              {Network: "tcp", Addr: "h:6379", Password: "p", ClientName: "me"},
		"redis://u:@h":                             {Network: "tcp", Addr: "h:6379", Username: "u"},
		"redis://":                                 {Network: "tcp", Addr: "localhost:6379"},
		"redis://:p@:7000/0":                       {Network: "tcp", Addr: "localhost:7000", Password: "p"},
		"valkey://h/2":                             {Network: "tcp", Addr: "h:6379", DB: 2},
		"valkeys://h":                              {Network: "tcp", Addr: "h:6379", TLS: &tls.Config{ServerName: "h"}},
		"redis://h?dial_timeout=3":                 {Network: "tcp", Addr: "h:6379", DialTimeout: 3 * time.Second},
		"redis://h?dial_timeout=-1":                {Network: "tcp", Addr: "h:6379", DialTimeout: -time.Second},
		"redis://h?dial_timeout=250ms":             {Network: "tcp", Addr: "h:6379", DialTimeout: 250 * time.Millisecond},
		"unix:///run/redis.sock":                   {Network: "unix", Addr: "/run/redis.sock"},
		"unix://u:p@/run/redis.sock?db=1":          {Network: "unix", Addr: "/run/redis.sock", Username: "u", Password: "p", DB: 1},
		"rediss://db.test:7000/1?client_name=jobs": {Network: "tcp", Addr: "db.test:7000", DB: 1, ClientName: "jobs", TLS: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "db.test"}},
	} {
		got, err := ParseURL(in)
		require.NoError(t, err, in)
		require.Equal(t, []any{want.Network, want.Addr, want.Username, want.Password, want.DB, want.ClientName, want.Protocol, want.DialTimeout, want.TLS == nil},
			[]any{got.Network, got.Addr, got.Username, got.Password, got.DB, got.ClientName, got.Protocol, got.DialTimeout, got.TLS == nil}, in)
		if want.TLS != nil {
			require.Equal(t, want.TLS.ServerName, got.TLS.ServerName)
		}
	}
	for _, in := range []string{
		"", "h:6379", "http://:hunter2@h", "redis://:hunter2@h:port", "redis://:hunter2%zz@h", "redis://:hunter2@h/x",
		"redis://:hunter2@h/1?db=2", "redis://h?db=1&db=2", "redis://h?password=hunter2", "redis://h?hunter2=1", "redis://h/-1", "redis://h?protocol=9",
		"redis://h?dial_timeout=fast", "redis://:hunter2@h#x", "unix://host/path", "unix://", "redis:h", "redis://h?a=%zz", "redis://h?client_name=a%20b",
		"redis://h?skip_verify=true", "rediss://h?skip_verify=perhaps", "redis://h?read_timeout=hunter2", "redis://h?max_retries=hunter2", "redis:///x",
		"redis://h?min_retry_backoff=2&max_retry_backoff=1", "redis:", "redis:/h", "redis://h?pool_timeout=1",
		"redis://:hunter2@h:99999", "redis://h:0", "redis://u:123?hunter2@h",
	} {
		_, err := ParseURL(in)
		require.Error(t, err, in)
		require.NotContains(t, err.Error(), "hunter2", in)
	}
	_, err := ParseURL("redis://h:99999?pool_timeout=1&steam=x")
	require.ErrorContains(t, err, "unknown parameter pool_timeout")
	require.ErrorContains(t, err, "unknown parameter steam")
	_, err = ParseURL("redis://h:99999")
	require.ErrorContains(t, err, `port "99999", it must be 1 to 65535`)
	o, err := ParseURL("rediss://h?skip_verify=true&read_timeout=2&write_timeout=250ms&max_retries=-1&min_retry_backoff=5ms&max_retry_backoff=1" +
		"&conn_max_lifetime=1h&pool_size=4")
	require.NoError(t, err)
	require.True(t, o.TLS.InsecureSkipVerify)
	require.Equal(t, []any{2 * time.Second, 250 * time.Millisecond, -1, 5 * time.Millisecond, time.Second, time.Hour, 4},
		[]any{o.Engine.ReadTimeout, o.Engine.WriteTimeout, o.Engine.Budget, o.Engine.BackoffMin, o.Engine.BackoffMax, o.MaxAge, o.Lent})
}
