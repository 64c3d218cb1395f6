package carry

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is w without the count that tells sessions apart, for comparing.
func seen(w Withdrawal) Withdrawal {
	w.At = 0
	return w
}
