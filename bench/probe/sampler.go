// Package probe looks at processes, disks and the page cache while a workload runs. A Sampler takes what a timeline
// lacks: what the engine's processes hold in memory and read from the disk, and its log and checkpoints from its
// statistics. Residency, Fill and Evict look at the page cache and change it, for cold and warm runs.
//
// It reads /proc and asks the kernel as Linux has it. Elsewhere these functions
// return ErrUnsupported, and a sampler tells only what the engine tells.
package probe

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/store/driver"
)

// Sampler takes samples in a goroutine of its own until it is stopped.
type Sampler struct {
	stats   func(context.Context) (driver.Stats, error)
	cancel  context.CancelFunc
	done    chan struct{}
	tracker tracker
	pids    atomic.Pointer[[]int] // of the engine, as it said last
	got     Samples
}

// PIDs returns the engine's processes, as it named them last.
func (s *Sampler) PIDs() []int {
	if pids := s.pids.Load(); pids != nil {
		return *pids
	}
	return nil
}

// Start takes a first sample, from which later ones count, and then others at an interval; 0 is half a second, so
// that no second lacks one. A sample has the figures of stats, such as driver.Engine.Stats, and those of the
// processes that stats names, with all that descend from them; if it names none, of this process. Sampling ends
// with the context or by Stop, which must be called.
func Start(ctx context.Context, interval time.Duration, stats func(context.Context) (driver.Stats, error)) *Sampler {
	s := &Sampler{stats: stats, done: make(chan struct{})}
	ctx, s.cancel = context.WithCancel(ctx)
	s.got.add(s.take(ctx))
	go s.run(ctx, cmp.Or(interval, time.Second/2))
	return s
}

func (s *Sampler) run(ctx context.Context, interval time.Duration) {
	defer close(s.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			sample, err := s.take(ctx)
			if ctx.Err() == nil {
				s.got.add(sample, err)
			}
		}
	}
}

// Stop ends the sampler and returns its samples. It does not take a last one,
// since the engine may be gone. Further calls return the same.
func (s *Sampler) Stop() *Samples {
	s.cancel()
	<-s.done
	return &s.got
}

// take returns what could be found out, with the errors of the rest.
func (s *Sampler) take(ctx context.Context) (Sample, error) {
	sample := Sample{At: time.Now()}
	stats, err := s.stats(ctx)
	if err == nil {
		sample.Stats = stats
		s.pids.Store(&stats.EnginePIDs)
	}
	errs := slices.DeleteFunc([]error{err, s.tracker.look(s.PIDs(), &sample)}, func(err error) bool { return errors.Is(err, ErrUnsupported) })
	return sample, errors.Join(errs...)
}

// Sample is what a sampler saw at one time. Nil fields are not known.
type Sample struct {
	At    time.Time
	Stats driver.Stats
	RSS   *int64 // bytes in memory, shared ones once
	Read  *int64 // bytes that its processes have read from the disk
}

// Samples are what a sampler saw, in order.
type Samples struct {
	List []Sample
	Err  error // the first one because of which a sample lacks something
}

func (s *Samples) add(sample Sample, err error) {
	s.List = append(s.List, sample)
	s.Err = cmp.Or(s.Err, err)
}

// Fill puts samples into the timeline of a run that began at a time, whose entry i is second i, as
// pace.Outcome.Seconds returns it: the size of the log that the last sample of a second tells, and what was read from
// the disk and how many checkpoints ended between the last sample before and that one. So it is off by up to the
// interval of the samples at both ends, and nothing is lost: what a second without a sample used is in the next one.
func (s *Samples) Fill(timeline []latency.Second, started time.Time) {
	// A second has its end and not its beginning; it is below 0 for what is not later than the start.
	second := func(i int) int { return int(math.Ceil(s.List[i].At.Sub(started).Seconds())) - 1 }
	before := 0
	for i := range s.List {
		at := second(i)
		if at >= len(timeline) {
			break
		}
		if i+1 < len(s.List) && second(i+1) == at {
			continue
		}
		if at >= 0 {
			put(&timeline[at], s.List[i].Stats.WALBytes, 1e6, "wal-MB")
		}
		if a, b := &s.List[before], &s.List[i]; at >= 0 && before < i {
			put(&timeline[at], grown(a.Read, b.Read), 1e6, "disk-read-MB")
			put(&timeline[at], grown(a.Stats.Checkpoints, b.Stats.Checkpoints), 1, "checkpoints")
		}
		before = i
	}
}

// put sets a figure, if it is known, in a unit of so many.
func put(to *latency.Second, v *int64, in float64, unit string) {
	if v == nil {
		return
	}
	if to.Sampled == nil {
		to.Sampled = map[string]float64{}
	}
	to.Sampled[unit] = float64(*v) / in
}

// grown returns by how much a counter has grown; nil when that is not known. A
// counter that fell began anew, as one of a restarted engine.
func grown(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	by := *b - *a
	if by < 0 {
		by = *b
	}
	return &by
}

// ErrUnsupported says that this system has no such thing to look at.
var ErrUnsupported = errors.New("probe: not supported on this system")
