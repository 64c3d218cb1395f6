package soak

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/faults/tally"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tally.Counted(m, os.Stdout)) }
