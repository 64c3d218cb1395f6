package lanes

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/fdengine/fullduplex/fdengine"
)

// Max is the largest number of lanes.
const Max = 64

// Keyed is the optional method by which a command names its key. It is called once for each submit, on the caller's
// goroutine and before the engine sees the command. The bytes are read before the call that submits returns, and not
// kept. Without the method, or with ok false, the command has no key. An empty key is a key.
type Keyed interface {
	Key() (key []byte, ok bool)
}

// Lanes are engines for one address. All methods are safe for concurrent use.
type Lanes struct {
	lanes    []lane
	turn     atomic.Uint32 // where the next Stream's search begins
	rejected atomic.Uint64 // commands whose Key failed: no engine saw them
	draining atomic.Bool   // Shutdown was called: a lane that ends is no reason to close the others
	running  atomic.Int64  // watchers
	ready    chan struct{}
	done     chan struct{}
	first    sync.Once
	tallies  sync.Pool // *tally
	batches  sync.Pool // *batch
}

// lane is one engine. Each has cache lines of its own, because all callers count on them.
type lane struct {
	load   atomic.Int64 // commands given to the engine and not settled; approximate for the caller who reads it
	engine *fdengine.Engine
	_      [112]byte
}

// New makes Lanes of engines that were made alike, for the same address, each with a pool.Leaser of its own: then the
// connection of a lane that timed out is fenced before that lane goes on. From here on they belong to the Lanes;
// submitting to one of them directly is allowed and not counted as load. The error names all that is wrong with
// engines, which stay the caller's then.
func New(engines ...*fdengine.Engine) (*Lanes, error) {
	var faults []error
	if n := len(engines); n < 1 || n > Max {
		faults = append(faults, fmt.Errorf("lanes: %d engines, there must be 1 to %d", n, Max))
	}
	seen := map[*fdengine.Engine]int{}
	for i, e := range engines {
		if e == nil {
			faults = append(faults, fmt.Errorf("lanes: engine %d is nil", i))
		} else if at, twice := seen[e]; twice {
			faults = append(faults, fmt.Errorf("lanes: engine %d is engine %d again", i, at))
		} else {
			seen[e] = i
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	s := &Lanes{lanes: make([]lane, len(engines)), ready: make(chan struct{}), done: make(chan struct{})}
	s.tallies.New = func() any { return &tally{home: s} }
	s.batches.New = func() any { return newBatch(s) }
	s.running.Store(int64(len(engines)))
	for i, e := range engines {
		s.lanes[i].engine = e
		go s.watch(e)
	}
	return s, nil
}

// Engines returns the engines in the order of New. The slice is the caller's.
func (s *Lanes) Engines() []*fdengine.Engine {
	all := make([]*fdengine.Engine, len(s.lanes))
	for i := range s.lanes {
		all[i] = s.lanes[i].engine
	}
	return all
}

// For returns the engine that commands of key go to.
func (s *Lanes) For(key []byte) *fdengine.Engine { return s.lanes[s.of(key)].engine }

// Stream returns a Stream on the lane with the fewest commands outstanding; lanes with equally many take turns.
// Commands of Streams are not counted there: many busy ones are spread by their number.
func (s *Lanes) Stream() *fdengine.Stream {
	return s.lanes[s.fewest(int(s.turn.Add(1)-1))].engine.Stream()
}

// StreamFor returns a Stream on the lane of key: its commands are in order with all others of that key.
func (s *Lanes) StreamFor(key []byte) *fdengine.Stream { return s.For(key).Stream() }

// of is the lane of a key.
func (s *Lanes) of(key []byte) int {
	i, _ := bits.Mul64(xxhash.Sum64(key), uint64(len(s.lanes)))
	return int(i)
}

// fewest is the lane with the fewest commands outstanding, the first such one when searched for from lane from on.
// So a caller who is alone always gets the same one, and no lane is dialed that nobody needs.
func (s *Lanes) fewest(from int) int {
	n := len(s.lanes)
	best := from % n
	least := s.lanes[best].load.Load()
	for k := 1; k < n && least > 0; k++ {
		i := (from + k) % n
		if load := s.lanes[i].load.Load(); load < least {
			best, least = i, load
		}
	}
	return best
}
