package probe

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Config says what a sampler looks at. The zero value looks at this process
// alone.
type Config struct {
	// Stats tells the engine's sizes and counters, and which processes it has beside
	// this one (driver.Stats.EnginePIDs), which are looked at with all that descend
	// from them: store.DB.Stats as a rule. Nil tells nothing.
	Stats func(context.Context) (driver.Stats, error)

	Dir string // whose files' residency is sampled; empty is none

	Interval time.Duration // between samples; 0 is 500 ms, so that no second lacks one
}

// residencyEvery is the time between looks at files; it is longer when a look takes
// more than 1 % of it.
const residencyEvery = 5 * time.Second

// Sampler takes samples in a goroutine of its own until it is stopped.
type Sampler struct {
	cfg      Config
	cancel   context.CancelFunc
	done     chan struct{}
	tracker  tracker
	pids     []int     // of the engine, as it said last
	resident time.Time // when residency is looked at next
	got      Samples
}

// Start takes a first sample, which later ones count from, and begins. It ends
// with the context or by Stop, which must be called.
func Start(ctx context.Context, cfg Config) *Sampler {
	if cfg.Interval <= 0 {
		cfg.Interval = 500 * time.Millisecond
	}
	s := &Sampler{cfg: cfg, done: make(chan struct{})}
	ctx, s.cancel = context.WithCancel(ctx)
	s.got.add(s.take(ctx))
	go s.run(ctx)
	return s
}

func (s *Sampler) run(ctx context.Context) {
	defer close(s.done)
	ticker := time.NewTicker(s.cfg.Interval)
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
	var errs []error
	if s.cfg.Stats != nil {
		stats, err := s.cfg.Stats(ctx)
		if err == nil {
			sample.Stats, s.pids = stats, stats.EnginePIDs
		}
		errs = append(errs, err)
	}
	errs = append(errs, s.tracker.look(s.pids, &sample))
	if s.cfg.Dir != "" && !sample.At.Before(s.resident) {
		begin := time.Now()
		pages, err := Residency(s.cfg.Dir)
		if err == nil {
			sample.Pages = &pages
		}
		s.resident = begin.Add(max(residencyEvery, 100*time.Since(begin)))
		errs = append(errs, err)
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrUnsupported) })
	return sample, errors.Join(errs...)
}
