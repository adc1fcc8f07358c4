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

// ArkivRowRate is the sustained load that Arkiv's engineers require, in rows a
// second.
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
		for _, scale := range l.scales() {
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

// The compared checkpoint policies, and the log size at which each acts.
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

// sustained plans commits of the blocks after the loaded part of the base
// profile, at a rate of rows a second; 0 means as fast as possible.
func (l *Lab) sustained(name, layout string, scale, rate float64, o *store.Options, more ...string) Variant {
	phases := sustainedPhases(scale, rate)
	return Variant{Name: name, Keys: l.OnBase(layout, scale, more...), Cost: BaseCost(scale, phases, 0), Run: func(t *Trial, ctx context.Context) error {
		t.Store = o
		return t.WithBase(ctx, func() error { return t.onRest(ctx, rate, time.Duration(phases*float64(l.Phase))) })
	}}
}

// sustainedPhases is the duration of commits in phases. At full rate it is the
// same for every engine and layout, and longer for a larger store, so that each
// size grows by the same share and its deep merges occur.
func sustainedPhases(scale, rate float64) float64 {
	if rate > 0 {
		return 2
	}
	return 2 * max(scale, 1)
}

// onRest commits the blocks after the loaded part, at a rate of rows a second.
func (t *Trial) onRest(ctx context.Context, rate float64, length time.Duration) error {
	return t.paced(ctx, bench.CommitConfig{Blocks: t.Data.Rest(), RowRate: rate, Config: pace.Config{Duration: length}})
}

// paced runs commits, while another goroutine samples the engine's counters
// (Timed). Reading counters between two commits would cost a server five round
// trips and SQLite almost nothing.
func (t *Trial) paced(ctx context.Context, cfg bench.CommitConfig) error {
	cfg.WarmUp = t.warmUp()
	return t.Timed(ctx, nil, func() (*pace.Outcome, error) {
		done, err := bench.Commit(ctx, t.Entities, cfg)
		t.Outcome(done.Outcome)
		t.Put(done.RowRate(), "rows/s")
		t.Put(float64(done.Rows), "rows")
		t.Put(done.Elapsed.Seconds(), "s")
		if cfg.RowRate == 0 && err == nil { // what can be kept up for as long as one likes
			start := time.Now()
			err = t.Entities.Flush(ctx)
			t.Put(float64(done.Rows)/max((done.Elapsed+time.Since(start)).Seconds(), 1e-9), "settled-rows/s")
		}
		t.Put(float64(done.Entities)/max(done.Elapsed.Seconds(), 1e-9), "ent/s")
		return done.Outcome, err
	})
}

func reorgs(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		list = append(list, Variant{Name: "Reorg", Keys: l.OnBase(layout, l.Scale, "for", l.Phase.String()), Cost: BaseCost(l.Scale, 1, 0), Run: (*Trial).reorg})
	}
	return list, nil
}

func (t *Trial) reorg(ctx context.Context) error {
	return t.WithBase(ctx, func() error {
		var reorg *bench.Reorg
		err := t.Aside(func() (err error) { reorg, err = bench.NewReorg(t.Copy, t.questionSeed()); return err })
		if t.Source != "" && errors.Is(err, store.ErrInvalid) {
			return fmt.Errorf("%w: %w", ErrSkip, err) // it has no entities for it
		}
		if err != nil {
			return err
		}
		before, after, err := t.sizesAround(ctx, func() error {
			return t.timed(ctx, func(ctx context.Context) (bench.Result, error) { return reorg.Run(ctx, pace.Config{Duration: t.Phase}) })
		})
		if after > 0 {
			t.Put(float64(after-before)/1e6, "growth-MB")
		}
		return err
	})
}

// sizesAround returns a database's size in bytes before f, and after it and its
// deferred work; 0 if the engine does not report it.
func (t *Trial) sizesAround(ctx context.Context, f func() error) (before, after int64, err error) {
	first, err := t.DB.Engine().Stats(ctx)
	if err == nil {
		err = f()
	}
	if err == nil {
		err = errors.Join(t.Entities.Flush(ctx), bench.FoldLog(ctx, t.DB))
	}
	if err != nil {
		return 0, 0, err
	}
	last, err := t.DB.Engine().Stats(ctx)
	if first.DatabaseBytes == nil || last.DatabaseBytes == nil {
		return 0, 0, err
	}
	return *first.DatabaseBytes, *last.DatabaseBytes, err
}
