package pause

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAPauseIsNeverTooShortAndTheTimerIsUsedAgain(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	start := time.Now()
	for i := range 20 {
		at := time.Duration(i) * 300 * time.Microsecond
		require.NoError(t, p.Until(start, at))
		require.GreaterOrEqual(t, time.Since(start), at)
	}
	from := time.Since(start)
	require.NoError(t, p.Until(start, from-time.Second))
	require.Less(t, time.Since(start)-from, time.Second, "what is over is not waited for")
}
