//go:build !unix

package cases_test

import (
	"testing"

	"github.com/fdengine/fullduplex/fdengine"
)

func slowStormCPU(t *testing.T, _ fdengine.Options) { t.Skip("CPU time is read on unix only") }
