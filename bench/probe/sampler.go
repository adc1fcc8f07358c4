package probe

import (
	"context"
	"errors"
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

	// Files are files and directories whose residency is sampled; nil is none.
	Files []string

	Interval time.Duration // between samples; 0 is 500 ms, so that no second lacks one
}

// residencyEvery is the time between looks at files; it is longer when a look takes
// more than 1 % of it.
const residencyEvery = 5 * time.Second

// Sampler takes samples in a goroutine of its own until it is stopped.
type Sampler struct {
	cancel context.CancelFunc
	done   chan struct{}
	got    Samples
}

// Start takes a first sample, which later ones count from, and begins. It ends
// with the context or by Stop, which must be called.
func Start(ctx context.Context, cfg Config) *Sampler {
	if cfg.Interval <= 0 {
		cfg.Interval = 500 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Sampler{cancel: cancel, done: make(chan struct{})}
	t := &taker{cfg: cfg}
	s.got.add(t.take(ctx))
	go s.run(ctx, t)
	return s
}

func (s *Sampler) run(ctx context.Context, t *taker) {
	defer close(s.done)
	ticker := time.NewTicker(t.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			sample, err := t.take(ctx)
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

// taker takes one sample after another.
type taker struct {
	cfg      Config
	tracker  tracker
	pids     []int     // of the engine, as it said last
	resident time.Time // when residency is looked at next
}

// take returns what could be found out, with the errors of the rest.
func (t *taker) take(ctx context.Context) (Sample, error) {
	sample := Sample{At: time.Now()}
	var errs []error
	if t.cfg.Stats != nil {
		stats, err := t.cfg.Stats(ctx)
		if err != nil {
			errs = append(errs, err)
		} else {
			sample.Stats, t.pids = stats, stats.EnginePIDs
		}
	}
	if err := t.tracker.look(t.pids, &sample); err != nil && !errors.Is(err, ErrUnsupported) {
		errs = append(errs, err)
	}
	if pages, err := t.pages(sample.At); err == nil {
		sample.Pages = pages
	} else if !errors.Is(err, ErrUnsupported) {
		errs = append(errs, err)
	}
	return sample, errors.Join(errs...)
}

// pages returns nil when it is not yet time.
func (t *taker) pages(now time.Time) (*Pages, error) {
	if len(t.cfg.Files) == 0 || now.Before(t.resident) {
		return nil, nil
	}
	begin := time.Now()
	pages, err := Residency(t.cfg.Files...)
	t.resident = now.Add(max(residencyEvery, 100*time.Since(begin)))
	return &pages, err
}
