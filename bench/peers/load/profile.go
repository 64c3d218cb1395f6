package load

import (
	"errors"
	"os"
	"runtime/pprof"
)

// profile starts a CPU profile into path; the function it returns ends it, and writes what was allocated since the
// start of the process beside it. Empty: neither.
func profile(path string) (end func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(f.Close(), allocations(path+".allocs"))
	}, nil
}

func allocations(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
