package pool

import (
	"fmt"
	"log/slog"
)

// String names the user and nothing of the password.
func (d Dial) String() string {
	s := "pool.Dial{"
	if d.Username != "" {
		s += "user " + d.Username + " "
	}
	if d.Password != "" {
		s += "password *** "
	}
	return s + fmt.Sprintf("fences %d}", len(d.Fence))
}

// Format prints String for every verb, so that no verb shows the fields.
func (d Dial) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.String())) }

// LogValue is String, for slog.
func (d Dial) LogValue() slog.Value { return slog.StringValue(d.String()) }
