package probe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Stats tells the engine's sizes and counters, and which processes it has beside this one
// (driver.Stats.EnginePIDs), which are looked at with all that descend from them: store.Engine.Stats as
// a rule.
type Stats func(context.Context) (driver.Stats, error)

// Sampler takes samples in a goroutine of its own until it is stopped.
type Sampler struct {
	stats   Stats
	cancel  context.CancelFunc
	done    chan struct{}
	tracker tracker
	pids    []int // of the engine, as it said last
	got     Samples
}

// Start takes a first sample, which later ones count from, and others at an interval, 0 for half a
// second, so that no second lacks one. It ends with the context or by Stop, which must be called.
func Start(ctx context.Context, interval time.Duration, stats Stats) *Sampler {
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
		sample.Stats, s.pids = stats, stats.EnginePIDs
	}
	errs := slices.DeleteFunc([]error{err, s.tracker.look(s.pids, &sample)}, func(err error) bool { return errors.Is(err, ErrUnsupported) })
	return sample, errors.Join(errs...)
}
