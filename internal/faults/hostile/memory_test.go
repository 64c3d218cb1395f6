package hostile

import (
	"runtime"
	"sync"
)

// meter watches the live heap.
type meter struct {
	base uint64
	mu   struct {
		sync.Mutex
		peak uint64
	}
}

func newMeter() *meter { return &meter{base: live()} }

func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// sample looks now.
func (m *meter) sample() {
	n := live()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.peak = max(m.mu.peak, n)
}

// grown is how many bytes more than at the start were live at most.
func (m *meter) grown() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(max(m.mu.peak, m.base) - m.base)
}
