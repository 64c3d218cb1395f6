package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

const (
	meterDepth  = 64
	meterTime   = 60 * time.Millisecond
	stillRecent = 100 * time.Millisecond
	quietEnough = 1.5 // how far a reading may be above the reference
)

// meter measures the machine: the raw limit at one depth, from this process, before and after each cell. Not for
// concurrent use.
type meter struct {
	client   contend.Client
	caller   contend.Caller
	readings []float64
	last     time.Time
}

func newMeter(addr string) (*meter, error) {
	who, err := contend.Find("raw limit")
	if err != nil {
		return nil, err
	}
	c, err := who.Open(context.Background(), contend.Target{Addr: addr})
	if err != nil {
		return nil, err
	}
	return &meter{client: c, caller: c.(contend.Bulk).All(meterDepth)}, nil
}

func (m *meter) close() error { return m.client.Close() }

// read takes about 60 ms and returns wall-clock nanoseconds per op, which both a slow machine and other processes
// raise.
func (m *meter) read() (float64, error) {
	calls := 0
	from := time.Now()
	for time.Since(from) < meterTime {
		if err := m.caller.Call(); err != nil {
			return 0, err
		}
		calls++
	}
	v := float64(time.Since(from)) / float64(calls*meterDepth)
	m.readings = append(m.readings, v)
	m.last = time.Now()
	return v, nil
}

// recent is the last reading, if nothing has happened since, or a new one.
func (m *meter) recent() (float64, error) {
	if n := len(m.readings); n > 0 && time.Since(m.last) < stillRecent {
		return m.readings[n-1], nil
	}
	return m.read()
}

// reference is what a reading is on this machine when it is quiet: the lower quartile of all so far.
func (m *meter) reference() float64 {
	if len(m.readings) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(m.readings))
	return s[len(s)/4]
}

// disturbance is how far the worse of two readings is above the reference, as a factor.
func (m *meter) disturbance(before, after float64) float64 {
	return max(before, after) / m.reference()
}

// profilePath names the profile of one cell.
func profilePath(dir, table, label string, round int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%s-%d.prof", table, strings.ReplaceAll(label, " ", "-"), round))
}
