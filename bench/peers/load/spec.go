// Package load runs one cell of a table: one contender, one face, so many callers, for so long. It counts, takes
// the process's own CPU time, samples latencies on every eighth call, and keeps the loop around the calls cheap. It
// knows nothing of the other cells, of rounds, or of what a good result is. It is meant to have a process to itself.
package load

import (
	"time"

	"github.com/fdengine/fullduplex/bench/peers/contend"
)

// Face is how commands are given to a client.
type Face string

const (
	Blocking Face = "blocking" // Callers goroutines, one command each
	Batch    Face = "batch"    // Callers goroutines, Size commands at once each
	Async    Face = "async"    // Window commands under way
	Replay   Face = "replay"   // Window commands unanswered when the connection is cut
	Open     Face = "open"     // commands arrive Rate times a second, whatever became of the earlier ones; Callers goroutines take them
	Flood    Face = "flood"    // as many commands as are accepted, to a server that cannot keep up
)

// Spec is one cell.
type Spec struct {
	Contender string        `json:"contender"`
	Face      Face          `json:"face"`
	Addr      string        `json:"addr"`
	Callers   int           `json:"callers,omitempty"`
	Size      int           `json:"size,omitempty"`
	Window    int           `json:"window,omitempty"`
	Engine    int           `json:"engine_window,omitempty"` // the engine only: its window; 0 = what the cell needs
	Single    bool          `json:"single,omitempty"`        // the engine only: asynchronous commands are submitted one by one
	Value     int           `json:"value,omitempty"`         // bytes of a value; 0 = 64
	Get       bool          `json:"get,omitempty"`           // callers read instead of store
	Rate      float64       `json:"rate,omitempty"`          // Open: arrivals a second; 0 = one whenever a caller is free
	Spinners  int           `json:"spinners,omitempty"`      // goroutines that do nothing but use CPU
	Procs     int           `json:"procs,omitempty"`         // GOMAXPROCS of the client; 0 = as it is
	Warm      time.Duration `json:"warm"`
	Length    time.Duration `json:"length"`
	Profile   string        `json:"profile,omitempty"` // file for a CPU profile of the measured part; with .allocs, what was allocated
}

// Depth is how many commands are under way at once.
func (s Spec) Depth() int {
	switch s.Face {
	case Batch:
		return s.Callers * s.Size
	case Async, Replay:
		return s.Window
	}
	return s.Callers
}

func (s Spec) target() contend.Target {
	return contend.Target{Addr: s.Addr, InFlight: s.Depth(), Window: s.Engine, Single: s.Single, Value: s.Value, Get: s.Get}
}

// Result is what one cell gave. CPU is user and system time of this process, latencies are of one Call;
// with the face Open they begin when the command was due.
type Result struct {
	Ops      int64   `json:"ops"`   // in the measured part
	Total    int64   `json:"total"` // with warming up: what a server must have counted
	Seconds  float64 `json:"seconds"`
	CPU      float64 `json:"cpu_ns"`                // per op
	Rate     float64 `json:"ops_per_s"`             // wall clock
	Allocs   float64 `json:"allocs"`                // per op
	Bytes    float64 `json:"bytes"`                 // allocated, per op
	PerWrite float64 `json:"per_write"`             // ops per write(2); 0 = not known
	PerRead  float64 `json:"per_read"`              // ops per read(2), those that found nothing included
	P50      float64 `json:"p50_ns"`                //
	P99      float64 `json:"p99_ns"`                //
	P999     float64 `json:"p999_ns"`               //
	Offered  float64 `json:"offered,omitempty"`     // Open: arrivals a second
	Max      float64 `json:"max_ns,omitempty"`      // Open: the longest
	Late     float64 `json:"late_p99_ns,omitempty"` // Open: 99th percentile of how late commands were handed to a caller
	Samples  int64   `json:"samples"`               // latencies taken
	InFlight float64 `json:"bytes_each"`            // Replay: heap per command under way, its encoding included
	Encoded  float64 `json:"encoded"`               // Replay: bytes of one encoded command
	Peak     float64 `json:"peak_bytes,omitempty"`  // Flood: what the heap grew by at most
	Limit    float64 `json:"limit_bytes,omitempty"` // Flood: bytes that the client may hold by its own limits
}
