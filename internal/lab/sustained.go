package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// ArkivRowRate is the sustained load that Arkiv's engineers ask for, in rows a second.
const ArkivRowRate = 6_000

// Arkiv's layout and ours are compared everywhere. arkiv-ordered is Arkiv's
// tables with a change of its indexes and queries that Arkiv could make: it is
// compared where reads are measured.
var (
	writeLayouts = []string{"arkiv", "arkiv-ordered", "arkiv-pruned", "compact", "simple"}
	written      = []string{"arkiv", "compact"}
	answers      = []string{"arkiv", "arkiv-ordered", "compact"}
)

func sustain(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		for _, scale := range l.sizes() {
			for _, rate := range l.RatesOr(ArkivRowRate, 0) {
				name := "max"
				if rate > 0 {
					name = Ftoa(rate)
				}
				list = append(list, l.sustained("Sustained", layout, scale, rate, l.StoreOptions(), "rate", name))
			}
		}
	}
	return list, nil
}

// The policies that are compared, and the sizes of the log at which each acts.
var policies = []struct {
	policy driver.CheckpointPolicy
	frames int
}{
	{driver.Inline, 1_000}, {driver.Inline, 10_000},
	{driver.Background, 1_000}, {driver.Background, 4_000},
	{driver.Manual, 0},
}

func checkpoints(l *Lab) (list []Variant, _ error) {
	const rate = 4 * ArkivRowRate
	linked, _ := driver.Lookup(l.Engine.Name)
	for _, layout := range l.LayoutsOr() {
		if !linked.Capabilities.WALCheckpoint { // its own checkpoints cannot be chosen
			list = append(list, l.sustained("Checkpoint", layout, l.Scale, rate, l.StoreOptions(), "policy", "engine"))
			continue
		}
		for _, p := range policies {
			o := l.StoreOptions()
			o.Checkpoint, o.WALFrames = p.policy, p.frames
			list = append(list, l.sustained("Checkpoint", layout, l.Scale, rate, o, "policy", string(p.policy), "frames", itoa(p.frames)))
		}
	}
	return list, nil
}

// sustained is commits of so many rows a second of what comes after the loaded part of the
// base profile; 0 is as fast as possible.
func (l *Lab) sustained(name, layout string, scale, rate float64, o *store.Options, more ...string) Variant {
	phases := sustainedPhases(scale, rate)
	return Variant{Name: name, Keys: l.OnBase(layout, scale, more...), Cost: baseCost(scale, phases, 0), Run: func(ctx context.Context, r *Record) error {
		return l.WithBase(ctx, layout, scale, o, r, func(d *bench.Dataset, cp *bench.Copy) error {
			return l.onRest(ctx, d, cp, rate, time.Duration(phases*float64(l.Phase)), r)
		})
	}}
}

// sustainedPhases is how many phases commits go on for. At full rate they are
// as long for every engine and layout, and longer for a larger store, because
// an engine adds the same share to each size then and meets its deep merges.
func sustainedPhases(scale, rate float64) float64 {
	if rate > 0 {
		return 2
	}
	return 2 * max(scale, 1)
}

// onRest runs commits of so many rows a second of what comes after the loaded part.
func (l *Lab) onRest(ctx context.Context, d *bench.Dataset, cp *bench.Copy, rate float64, length time.Duration, r *Record) error {
	return l.paced(ctx, cp, bench.CommitConfig{Blocks: d.Rest(), RowRate: rate, Config: pace.Config{Duration: length}}, r)
}

// paced runs commits; another goroutine samples the engine's counters meanwhile
// (phaseAt), because a look at counters between two commits costs a server five
// round trips and SQLite next to nothing.
func (l *Lab) paced(ctx context.Context, cp *bench.Copy, cfg bench.CommitConfig, r *Record) error {
	cfg.WarmUp = l.warmUp()
	return l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
		done, err := bench.Commit(ctx, cp.Entities, cfg)
		r.Outcome(done.Outcome)
		r.Put(done.RowRate(), "rows/s")
		r.Put(float64(done.Rows), "rows")
		r.Put(done.Elapsed.Seconds(), "s")
		if cfg.RowRate == 0 && err == nil { // what can be kept up for as long as one likes
			start := time.Now()
			err = cp.Entities.Flush(ctx)
			r.Put(float64(done.Rows)/max((done.Elapsed+time.Since(start)).Seconds(), 1e-9), "settled-rows/s")
		}
		r.Put(float64(done.Entities)/max(done.Elapsed.Seconds(), 1e-9), "ent/s")
		return done.Outcome, err
	})
}

func reorgs(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		c := l.OnBase(layout, l.Scale, "for", l.Phase.String())
		list = append(list, Variant{Name: "Reorg", Keys: c, Cost: baseCost(l.Scale, 1, 0), Run: func(ctx context.Context, r *Record) error { return l.reorg(ctx, layout, r) }})
	}
	return list, nil
}

func (l *Lab) reorg(ctx context.Context, layout string, r *Record) error {
	return l.WithBase(ctx, layout, l.Scale, l.StoreOptions(), r, func(_ *bench.Dataset, cp *bench.Copy) error {
		var reorg *bench.Reorg
		err := l.Aside(func() (err error) { reorg, err = bench.NewReorg(cp, l.fresh()); return err })
		if l.Source != "" && errors.Is(err, store.ErrInvalid) {
			return fmt.Errorf("%w: %w", ErrSkip, err) // it has no entities for it
		}
		if err != nil {
			return err
		}
		before, after, err := sizesAround(ctx, cp, func() error {
			return l.timed(ctx, cp, r, func(ctx context.Context) (bench.Result, error) { return reorg.Run(ctx, pace.Config{Duration: l.Phase}) })
		})
		if after > 0 {
			r.Put(float64(after-before)/1e6, "growth-MB")
		}
		return err
	})
}

// sizesAround returns the bytes of a database before f, and after it and the
// work that it put off; 0 where the engine does not report them.
func sizesAround(ctx context.Context, cp *bench.Copy, f func() error) (before, after int64, err error) {
	first, err := cp.DB.Engine().Stats(ctx)
	if err == nil {
		err = f()
	}
	if err == nil {
		err = errors.Join(cp.Entities.Flush(ctx), bench.FoldLog(ctx, cp.DB))
	}
	if err != nil {
		return 0, 0, err
	}
	last, err := cp.DB.Engine().Stats(ctx)
	if first.DatabaseBytes == nil || last.DatabaseBytes == nil {
		return 0, 0, err
	}
	return *first.DatabaseBytes, *last.DatabaseBytes, err
}
