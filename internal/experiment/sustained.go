package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// seedRowRate is the sustained load of the user's documents, in rows a second.
const seedRowRate = 6_000

// writeLayouts are those that commits choose between; answers are the seed's and ours.
var (
	writeLayouts = []string{"arkiv", "arkiv-ordered", "arkiv-pruned", "compact", "simple"}
	answers      = []string{"arkiv", "compact"}
)

func sustain(l *Lab) (list []variant, _ error) {
	rates := l.Rates
	if len(rates) == 0 {
		rates = []float64{seedRowRate, 0}
	}
	for _, layout := range l.layouts() {
		for _, rate := range rates {
			name := "max"
			if rate > 0 {
				name = ftoa(rate)
			}
			list = append(list, l.sustained("Sustained", layout, rate, l.storeOptions(), "rate", name))
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

func checkpoints(l *Lab) (list []variant, _ error) {
	const rate = 4 * seedRowRate
	linked, _ := driver.Lookup(l.Engine.Name)
	for _, layout := range l.layouts() {
		if !linked.Capabilities.WALCheckpoint { // its own checkpoints cannot be chosen
			list = append(list, l.sustained("Checkpoint", layout, rate, l.storeOptions(), "policy", "engine"))
			continue
		}
		for _, p := range policies {
			o := l.storeOptions()
			o.Checkpoint, o.WALFrames = p.policy, p.frames
			list = append(list, l.sustained("Checkpoint", layout, rate, o, "policy", string(p.policy), "frames", itoa(p.frames)))
		}
	}
	return list, nil
}

// sustained is commits of so many rows a second of what comes after the loaded part of the
// base profile; 0 is as fast as possible.
func (l *Lab) sustained(name, layout string, rate float64, o *store.Options, more ...string) variant {
	return variant{name, l.onBase(layout, more...), func(ctx context.Context, r *result.Record) error {
		return l.withMendoza(ctx, layout, l.Scale, o, r, func(d *mendoza, cp *bench.Copy) error {
			return l.onRest(ctx, d, cp, rate, 2*l.Phase, r)
		})
	}}
}

// onRest runs commits of so many rows a second of what comes after the loaded part.
func (l *Lab) onRest(ctx context.Context, d *mendoza, cp *bench.Copy, rate float64, length time.Duration, r *result.Record) error {
	every, err := l.every(d, rate)
	if err != nil {
		return err
	}
	return l.paced(ctx, cp, bench.CommitConfig{Blocks: d.Rest(), Every: every, For: length}, r)
}

// paced runs commits with samples beside them. Commits that were in a
// checkpoint, by the engine's counters, are a kind of their own.
func (l *Lab) paced(ctx context.Context, cp *bench.Copy, cfg bench.CommitConfig, r *result.Record) error {
	observe, addSplit := split(ctx, cp.DB)
	cfg.Observe, cfg.WarmUp = observe, l.warmUp()
	sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats, Files: []string{cp.Dir}})
	done, err := bench.Commits(ctx, cp.Entities, cfg)
	if err == nil && cfg.Every == 0 {
		err = settle(ctx, cp.Entities, done, r)
	}
	samples := sampler.Stop()
	addOutcome(r, done.Outcome)
	put(r, done.RowRate(), "rows/s")
	put(r, float64(done.Entities)/max(done.Elapsed.Seconds(), 1e-9), "ent/s")
	addSplit(r)
	addSamples(r, samples, done.Started, done.Seconds())
	return err
}

// settle does what the layout has put off, and gives the rate of rows with it: what
// can be kept up for as long as one likes.
func settle(ctx context.Context, ents *store.Entities, done *bench.Paced, r *result.Record) error {
	start := time.Now()
	err := ents.Settle(ctx)
	took := time.Since(start).Seconds()
	put(r, float64(done.Rows)/max(done.Elapsed.Seconds()+took, 1e-9), "settled-rows/s")
	put(r, took, "settle-s")
	return err
}

// split tells commits that were in a checkpoint from the others, by the engine's
// counter of them.
func split(ctx context.Context, db *store.DB) (observe func(*store.Block, time.Duration), add func(*result.Record)) {
	stats, _ := db.Stats(ctx)
	last, with, without := stats.Checkpoints, latency.NewRecorder(), latency.NewRecorder()
	if last == nil {
		return nil, func(r *result.Record) {
			r.Notes = append(r.Notes, "the engine does not tell of its checkpoints, so commits with and without one are not told apart")
		}
	}
	observe = func(_ *store.Block, took time.Duration) {
		now, err := db.Stats(ctx)
		if err != nil || now.Checkpoints == nil {
			return
		}
		rec := without
		if *now.Checkpoints > *last {
			rec = with
		}
		rec.Record(took)
		last = now.Checkpoints
	}
	return observe, func(r *result.Record) {
		addSome(r, "with-checkpoint", with)
		addSome(r, "without-checkpoint", without)
	}
}

// addSome adds a kind of operations, if there were any.
func addSome(r *result.Record, kind string, rec *latency.Recorder) {
	if rec.Count() > 0 {
		addLatency(r, kind, rec)
	}
}

func reorgs(l *Lab) (list []variant, _ error) {
	for _, layout := range l.layouts() {
		c := l.onBase(layout, "for", l.Phase.String())
		list = append(list, variant{"Reorg", c, func(ctx context.Context, r *result.Record) error { return l.reorg(ctx, layout, r) }})
	}
	return list, nil
}

// reorgPayload is the size of payloads in the base profile.
const reorgPayload = 5 << 10

func (l *Lab) reorg(ctx context.Context, layout string, r *result.Record) error {
	return l.withMendoza(ctx, layout, l.Scale, l.storeOptions(), r, func(_ *mendoza, cp *bench.Copy) error {
		before, err := cp.DB.Stats(ctx)
		if err != nil {
			return err
		}
		var started time.Time
		var line latency.Timeline
		reorg, err := bench.NewReorg(cp, bench.ReorgConfig{
			Seed: l.Seed, Payload: reorgPayload,
			Observe: func(_ *store.Block, took time.Duration) { line.Record(time.Since(started), took) },
		})
		if err != nil {
			return err
		}
		sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats, Files: []string{cp.Dir}})
		started = time.Now()
		res, err := reorg.Run(ctx, bench.For(l.Phase))
		elapsed, samples := time.Since(started), sampler.Stop()
		add(r, "reorg", res.Both)
		addSome(r, "arrival", res.Arrival.Latency)
		addSome(r, "rewind", res.Rewind.Latency)
		addSome(r, "commit", res.Commit.Latency)
		addSamples(r, samples, started, line.Seconds(elapsed))
		addTrend(r)
		if err == nil {
			err = bench.FoldLog(ctx, cp.DB) // into what is compared
		}
		if err != nil {
			return err
		}
		after, err := cp.DB.Stats(ctx)
		if before.DatabaseBytes != nil && after.DatabaseBytes != nil {
			put(r, float64(*after.DatabaseBytes-*before.DatabaseBytes)/1e6, "growth-MB")
		}
		return err
	})
}

// addTrend compares the last third of a timeline with the first: what goes on for an
// hour may get slower, and the log or the file grow.
func addTrend(r *result.Record) {
	third := len(r.Timeline) / 3
	for _, v := range []struct {
		name, unit string
		in         float64
		of         func(*result.Second) *float64
	}{
		{"p50", "ms", float64(time.Millisecond), func(s *result.Second) *float64 { return latencyOf(s, s.P50) }},
		{"slowest", "ms", float64(time.Millisecond), func(s *result.Second) *float64 { return latencyOf(s, s.Max) }},
		{"log", "MB", 1e6, func(s *result.Second) *float64 { return float(s.WALBytes) }},
		{"database", "MB", 1e6, func(s *result.Second) *float64 { return float(s.DatabaseBytes) }},
	} {
		first, last := known(r.Timeline[:third], v.of), known(r.Timeline[len(r.Timeline)-third:], v.of)
		if len(first) == 0 || len(last) == 0 {
			continue
		}
		from, to := stat.Median(first), stat.Median(last)
		r.Notes = append(r.Notes, fmt.Sprintf("%s, median of the seconds: %.3g %s in the first third, %.3g in the last", v.name, from/v.in, v.unit, to/v.in))
		if from > 0 {
			put(r, to/from, "trend-"+v.name)
		}
	}
}

// latencyOf returns a latency of a second in which there were operations.
func latencyOf(s *result.Second, d time.Duration) *float64 {
	if s.Count == 0 {
		return nil
	}
	return float(&d)
}
