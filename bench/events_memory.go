package bench

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/store/event"
)

// Growth is by how much memory grew at most, in bytes.
type Growth struct {
	RSS  int64 // of the engine's processes, or of this one, which it is in
	Heap int64 // live and dead objects of this process
}

// heapEvery is the number of events between two looks at the heap.
const heapEvery = 5000

// ReadEventsMemory reads every event and tells by how much memory grew meanwhile.
// It fails with ErrMismatch when the number of events is not that of the data set.
func ReadEventsMemory(ctx context.Context, cp *EventCopy) (g Growth, err error) {
	debug.FreeOSMemory()
	heap := heapBytes()
	sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats, Interval: 10 * time.Millisecond})
	n := 0
	for _, err := range cp.Events.Read(ctx, event.All(), nil) {
		if err != nil {
			sampler.Stop()
			return g, err
		}
		if n++; n%heapEvery == 0 {
			g.Heap = max(g.Heap, heapBytes()-heap)
		}
	}
	samples := sampler.Stop()
	if n != cp.Data.Len() {
		return g, mismatch("%d events, want %d", n, cp.Data.Len())
	}
	first := int64(-1)
	for _, s := range samples.List {
		if s.RSS == nil {
			continue
		}
		if first < 0 {
			first = *s.RSS
		}
		g.RSS = max(g.RSS, *s.RSS-first)
	}
	return g, samples.Err
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
