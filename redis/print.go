package redis

import (
	"fmt"
	"log/slog"
	"strings"
)

// What a command carries may be secret (a password, a payload): printing or logging one shows its name and how many
// arguments follow, for every verb.

// String is the command's name, with how many arguments follow.
func (c *Cmd) String() string {
	if c.args.n == 0 {
		return "redis command without a name"
	}
	name := c.Name()
	if len(name) > longestWord {
		name = name[:longestWord] + "..."
	}
	return fmt.Sprintf("%s(%d arguments)", strings.ToValidUTF8(name, "?"), c.args.n-1)
}

// Format prints String for every verb.
func (c *Cmd) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// LogValue is String, for slog.
func (c *Cmd) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String says how many commands there are.
func (t *Tx) String() string { return fmt.Sprintf("MULTI(%d commands)", len(t.cmds)) }

// Format prints String for every verb.
func (t *Tx) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// LogValue is String, for slog.
func (t *Tx) LogValue() slog.Value { return slog.StringValue(t.String()) }
