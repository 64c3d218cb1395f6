package redis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/pool"
)

const secret = "hunter2-very-secret"

// shows is v as every verb of package fmt and both handlers of slog print it.
func shows(v any) string {
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("text", "v", v, slog.Group("g", "v", v))
	slog.New(slog.NewJSONHandler(&b, nil)).Info("json", "v", v)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		fmt.Fprintf(&b, "\n"+verb, v)
		fmt.Fprintf(&b, "\n"+verb, []any{v, &v, map[string]any{"k": v}, struct{ V any }{v}})
	}
	if j, err := json.Marshal(v); err == nil {
		b.Write(j)
	}
	return b.String()
}

func requireSilent(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprint([]byte(secret)), secret[:len(secret)-4]} {
		if strings.Contains(text, form) {
			t.Fatalf("%s shows the password: %.300s", what, text)
		}
	}
}

// A Client kept its Options as they had been given, in a field that package fmt prints without asking: %+v of the
// Client in a log line was the password.
func TestNoPrintedFormOfAnythingShowsThePassword(t *testing.T) {
	o := Options{Addr: "h:1", Username: "u", Password: secret}
	c, err := New(o)
	require.NoError(t, err)
	defer func() { _ = c.Close(); <-c.Done() }()
	for what, v := range map[string]any{
		// Not the Client as a whole, which package fmt would read without its locks.
		"Options": o, "*Options": &o, "what a Client keeps": struct{ options Options }{c.options},
		"pool.Options": o.pool(), "pool.Options of lent ones": o.lentPool(), "fdengine.Options": o.engine(nil), "Stats": c.Stats(),
		"pool.Dial": pool.Dial{Username: "u", Password: secret}, "*pool.Dial": &pool.Dial{Password: secret},
		"Cmd": NewCmd("AUTH", "u", secret), "Tx": NewTx(NewCmd("AUTH", secret)), "SET": Set("k", secret),
	} {
		requireSilent(t, what, shows(v))
	}
	require.Contains(t, shows(pool.Dial{Username: "u", Password: secret, Fence: []any{1, 2}}), "user u password *** fences 2")
	require.Contains(t, shows(o), "user u password ***")
}

// What the server says of a set-up that it refuses may quote it, as a whole, in part, or on one line.
func TestNoErrorEventOrLogLineOfARefusedPasswordShowsIt(t *testing.T) {
	for name, quote := range map[string]func(string) string{
		"whole":   func(s string) string { return "ERR what is " + s },
		"short":   func(s string) string { return "ERR with args beginning with: '" + s[:len(s)-4] + "'" },
		"code":    func(s string) string { return s + " is no code" },
		"twice":   func(s string) string { return "ERR " + s + s },
		"default": func(string) string { return "WRONGPASS invalid username-password pair or user is disabled." },
	} {
		for _, protocol := range []int{2, 3} {
			so := scripted.Options{OnHandshake: func(_ *scripted.ServerConn, req scripted.Request) scripted.Action {
				if v := req.Verb(); v == "AUTH" || v == "HELLO" {
					return scripted.Refuse(quote(secret))
				}
				return scripted.Action{}
			}}
			var log lockedBuffer
			o := Options{Password: secret, Protocol: protocol, Engine: fdengine.Options{
				MaxOutage: time.Second, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
				Observer: observer(func(ev fdengine.Event) { fmt.Fprintf(&log, "%+v %v", ev, ev.Err) }),
			}}
			bubble(t, so, o, func(t *testing.T, r *rig) {
				for _, err := range []error{
					r.Do(context.Background(), Incr("n")), r.Blocking(context.Background(), NewCmd("BLPOP", "q", 1)), second(r.Lend(context.Background())),
				} {
					require.Error(t, err)
					for ; err != nil; err = errors.Unwrap(err) {
						requireSilent(t, name, shows(err))
					}
				}
			})
			requireSilent(t, "log", log.text())
			require.NotEmpty(t, log.text())
		}
	}
}

// lockedBuffer is written by engines and their hooks at the same time.
type lockedBuffer struct {
	mu struct {
		sync.Mutex
		b bytes.Buffer
	}
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.b.Write(p)
}

func (l *lockedBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.b.String()
}

func second[T any](_ T, err error) error { return err }

type observer func(fdengine.Event)

func (f observer) Observe(ev fdengine.Event) { f(ev) }

func TestAQuotationIsTakenOutAndTheRestStays(t *testing.T) {
	for _, tc := range []struct{ text, secret, want string }{
		{"ERR unknown 'x', with args: 'abc'", "abc", "ERR unknown 'x', with args: '***'"},
		{"ERR '0123456789abcdef' 'x'", "0123456789abcdef0123456789abcdef", "ERR '***' 'x'"},
		{"ERR 0123456 is not enough", "0123456789", "ERR 0123456 is not enough"},
		{"ERR 01234567 is", "0123456789", "ERR *** is"},
		{"a a", "a", "*** ***"},
		{"one two three", "one\r\ntwo three", "one***"},
		{"one  two three", "one\r\ntwo three", "***"},
		{"", "x", ""},
	} {
		require.Equal(t, tc.want, redacted(tc.text, tc.secret), tc.text)
	}
	w := &wire{secret: strings.Repeat("01234567890", 100)}
	e := w.refusal([]byte("-ERR " + strings.Repeat("0123456x", 1<<17) + "\r\n"))
	require.Len(t, e.Message, 4096, "a server that says much is not looked through for a second")
}
