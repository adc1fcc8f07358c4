// Package probe observes processes, disks and the page cache while a workload
// runs. A Sampler adds to a timeline the memory of the engine's processes,
// their reads from the disk, and the engine's log size and checkpoints.
// Residency, Fill and Evict inspect and change the page cache, for cold and
// warm runs.
//
// It needs Linux: /proc and some system calls. Elsewhere these functions return
// ErrUnsupported, and a sampler reports only the engine's statistics.
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

// Sampler takes samples in a goroutine until it is stopped.
type Sampler struct {
	stats   func(context.Context) (driver.Stats, error)
	cancel  context.CancelFunc
	done    chan struct{}
	tracker tracker
	pids    atomic.Pointer[[]int] // of the engine, as last reported
	got     Samples
}

// PIDs returns the engine's processes, as last reported.
func (s *Sampler) PIDs() []int {
	if pids := s.pids.Load(); pids != nil {
		return *pids
	}
	return nil
}

// Start takes a first sample, as the base of later ones, and then one at each
// interval; 0 is half a second, so that no second is without a sample. A sample
// has the figures of stats (such as driver.Engine.Stats), and the figures of
// the processes that stats names, with their descendants; if it names none, of
// this process. Sampling ends with the context or by Stop, which must be
// called.
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

// Stop ends the sampler and returns its samples. It takes no last sample,
// because the engine may be closed. Further calls return the same.
func (s *Sampler) Stop() *Samples {
	s.cancel()
	<-s.done
	return &s.got
}

// take returns the figures that could be read, with the errors of the rest.
func (s *Sampler) take(ctx context.Context) (Sample, error) {
	sample := Sample{At: time.Now()}
	stats, err := s.stats(ctx)
	if err == nil {
		sample.Stats = stats
		s.pids.Store(&stats.EnginePIDs)
	}
	errs := slices.DeleteFunc([]error{err, s.tracker.sample(s.PIDs(), &sample)}, func(err error) bool { return errors.Is(err, ErrUnsupported) })
	return sample, errors.Join(errs...)
}

// Sample is one observation. Nil fields are not known.
type Sample struct {
	At    time.Time
	Stats driver.Stats
	RSS   *int64 // bytes in memory, shared ones once
	Read  *int64 // bytes that its processes have read from the disk
}

// Samples are the observations in order.
type Samples struct {
	List []Sample
	Err  error // the first error that made a sample incomplete
}

func (s *Samples) add(sample Sample, err error) {
	s.List = append(s.List, sample)
	s.Err = cmp.Or(s.Err, err)
}

// Fill puts samples into the timeline of a run, whose entry i is second i, as
// in pace.Outcome.Seconds. A second gets the log size of its last sample; its
// disk reads and finished checkpoints are the difference to the last sample
// before. So it is off by up to one interval at both ends. Nothing is lost: the
// use of a second without a sample is added to the next one.
func (s *Samples) Fill(timeline []latency.Second, started time.Time) {
	// A second includes its end but not its beginning. Samples at or before the
	// start are below 0.
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

// put sets a figure, if it is known, in the given unit.
func put(to *latency.Second, v *int64, in float64, unit string) {
	if v == nil {
		return
	}
	if to.Sampled == nil {
		to.Sampled = map[string]float64{}
	}
	to.Sampled[unit] = float64(*v) / in
}

// grown returns the growth of a counter; nil when it is not known. A counter
// that fell was reset, as after a restart of the engine.
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

// ErrUnsupported reports that this system does not offer the observation.
var ErrUnsupported = errors.New("probe: not supported on this system")
