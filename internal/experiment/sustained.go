package experiment

import (
	"context"
	"errors"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// seedRowRate is the sustained load of the user's documents, in rows a second.
const seedRowRate = 6_000

// writeLayouts are those that commits choose between.
var writeLayouts = []string{"arkiv", "arkiv-pruned", "simple"}

// sustained are commits under a load that goes on, and what checkpoints and
// reorgs do to them.
func sustained() []Experiment {
	return []Experiment{
		{
			ID: "D1", Title: "Sustained writes", Layouts: writeLayouts,
			Question: "What are the latencies of commits at 6,000 rows a second, and how many rows a second can be kept up?",
			Earlier:  "targets: p50 < 500, p99 < 1,500, max < 2,000 ms, over 5,000 rows/s; to stay on SQLite: p99 < 500 ms at 5x",
			Run:      sustain,
		},
		{
			ID: "D2", Title: "Checkpoint stalls", Layouts: []string{"arkiv"},
			Question: "How long are commits that carry a checkpoint, who should run it, and at which size of the log?",
			Earlier:  "asked: wal_autocheckpoint 1,000, 10,000, off; PASSIVE between blocks; background",
			Run:      checkpoints,
		},
		{
			ID: "D3", Title: "Reorgs", Layouts: []string{"arkiv", "arkiv-pruned"},
			Question: "What does it cost to delete 500 rows and insert 500 with the same keys, over and over, and does the file grow?",
			Earlier:  "asked: for an hour, p99 < 500 ms",
			Run:      reorgs,
		},
	}
}

func sustain(ctx context.Context, l *Lab) error {
	for _, layout := range l.layouts(writeLayouts...) {
		for _, rate := range l.rates() {
			c := l.config("layout", layout, "profile", l.profile(), "durability", string(l.Durability), "scale", ftoa(l.Scale), "rate", rateName(rate))
			err := l.measure(ctx, "Sustained", c, func(ctx context.Context, r *result.Record) error {
				return l.sustain(ctx, layout, rate, l.storeOptions(), r)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) rates() []float64 {
	if len(l.Rates) > 0 {
		return l.Rates
	}
	return []float64{seedRowRate, 0}
}

func rateName(rate float64) string {
	if rate == 0 {
		return "max"
	}
	return ftoa(rate)
}

// sustain applies what comes after the loaded part of the base profile, at so
// many rows a second, or as fast as possible for 0.
func (l *Lab) sustain(ctx context.Context, layout string, rate float64, o *store.Options, r *result.Record) error {
	d, err := l.mendoza(layout, mendozaOptions{merge: productionBlock})
	if err != nil {
		return err
	}
	every, err := d.every(rate)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, o, r, func(ctx context.Context, cp *bench.Copy) error {
		return l.paced(ctx, cp, bench.PacedConfig{Blocks: d.Rest(), Every: every, For: 2 * l.Phase, WarmUp: l.warmUp()}, r)
	})
}

// paced runs commits with samples beside them. Commits that were in a
// checkpoint, by the engine's counters, are a kind of their own.
func (l *Lab) paced(ctx context.Context, cp *bench.Copy, cfg bench.PacedConfig, r *result.Record) error {
	split := newSplit(ctx, cp.DB)
	cfg.Observe = split.observe
	sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats, Files: []string{cp.Dir}})
	done, err := bench.Commits(ctx, cp.Entities, cfg)
	if err == nil && cfg.Every == 0 {
		err = settle(ctx, cp.Entities, done, r)
	}
	samples := sampler.Stop()
	addOutcome(r, done.Outcome)
	r.Metrics = append(r.Metrics,
		result.Metric{Value: done.RowRate(), Unit: "rows/s"},
		result.Metric{Value: float64(done.Entities) / max(done.Elapsed.Seconds(), 1e-9), Unit: "ent/s"})
	split.add(r)
	addSamples(r, samples, done.Started, done.Seconds())
	return err
}

// settle does what the layout has put off, and gives the rate of rows with it: what
// can be kept up for as long as one likes.
func settle(ctx context.Context, ents *store.Entities, done *bench.Paced, r *result.Record) error {
	start := time.Now()
	err := ents.Settle(ctx)
	took := time.Since(start).Seconds()
	r.Metrics = append(r.Metrics,
		result.Metric{Value: float64(done.Rows) / max(done.Elapsed.Seconds()+took, 1e-9), Unit: "settled-rows/s"},
		result.Metric{Value: took, Unit: "settle-s"})
	return err
}

// split tells commits that were in a checkpoint from the others.
type split struct {
	ctx           context.Context
	db            *store.DB
	last          driver.Stats
	with, without *latency.Recorder
	known         bool
}

func newSplit(ctx context.Context, db *store.DB) *split {
	s := &split{ctx: ctx, db: db, with: latency.NewRecorder(), without: latency.NewRecorder()}
	var err error
	s.last, err = db.Stats(ctx)
	s.known = err == nil && s.last.Checkpoints != nil
	return s
}

func (s *split) observe(_ *store.Block, took time.Duration) {
	if !s.known {
		return
	}
	now, err := s.db.Stats(s.ctx)
	if err != nil || now.Checkpoints == nil {
		return
	}
	rec := s.without
	if *now.Checkpoints > *s.last.Checkpoints {
		rec = s.with
	}
	rec.Record(took)
	s.last = now
}

func (s *split) add(r *result.Record) {
	if !s.known {
		r.Notes = append(r.Notes, "the engine does not tell of its checkpoints, so commits with and without one are not told apart")
		return
	}
	for _, part := range []struct {
		kind string
		rec  *latency.Recorder
	}{{"with-checkpoint", s.with}, {"without-checkpoint", s.without}} {
		if part.rec.Count() > 0 {
			r.Latencies = append(r.Latencies, part.rec.Distribution(part.kind))
		}
	}
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

func checkpoints(ctx context.Context, l *Lab) error {
	linked, _ := driver.Lookup(l.Engine.Name)
	for _, layout := range l.layouts("arkiv") {
		for _, p := range policies {
			if !linked.Capabilities.WALCheckpoint && p.policy != driver.Background {
				continue // its own checkpoints cannot be chosen
			}
			c := l.config("layout", layout, "profile", l.profile(), "durability", string(l.Durability), "scale", ftoa(l.Scale))
			o := l.storeOptions()
			if linked.Capabilities.WALCheckpoint {
				c = c.With("policy", string(p.policy)).With("frames", itoa(p.frames))
				o.Checkpoint, o.WALFrames = p.policy, p.frames
			} else {
				c = c.With("policy", "engine")
			}
			err := l.measure(ctx, "Checkpoint", c, func(ctx context.Context, r *result.Record) error {
				return l.sustain(ctx, layout, 4*seedRowRate, o, r)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func reorgs(ctx context.Context, l *Lab) error {
	for _, layout := range l.layouts("arkiv", "arkiv-pruned") {
		c := l.config("layout", layout, "profile", "mendoza-like", "durability", string(l.Durability), "scale", ftoa(l.Scale))
		err := l.measure(ctx, "Reorg", c, func(ctx context.Context, r *result.Record) error {
			return l.reorg(ctx, layout, r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reorgProfile has the attributes and the payload of the base profile.
var reorgProfile = bench.Profile{Name: "mendoza-like", Strings: 12, Numbers: 4, Payload: 5 << 10}

func (l *Lab) reorg(ctx context.Context, layout string, r *result.Record) error {
	d := bench.Dataset{
		Engine: l.Engine, Layout: layout, Profile: reorgProfile,
		Gen: bench.GenOptions{Entities: l.scaled(100_000, minEntities), PerBlock: perBlock, Seed: l.Seed},
	}
	return l.withDataset(ctx, d, l.storeOptions(), r, func(ctx context.Context, cp *bench.Copy) error {
		if !cp.Entities.Temporal() {
			return errNoHistory
		}
		before, err := cp.DB.Stats(ctx)
		if err != nil {
			return err
		}
		started := time.Now()
		var line latency.Timeline
		sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats})
		res, err := bench.Reorg(ctx, cp.Entities, bench.ReorgConfig{
			Profile: reorgProfile, After: d.Gen, Loop: bench.For(2 * l.Phase),
			Observe: func(rewind, commit time.Duration) { line.Record(time.Since(started), rewind+commit) },
		})
		elapsed, samples := time.Since(started), sampler.Stop()
		add(r, "reorg", res.Both)
		r.Latencies = append(r.Latencies, res.Rewind.Latency.Distribution("rewind"), res.Commit.Latency.Distribution("commit"))
		addSamples(r, samples, started, line.Seconds(elapsed))
		if err != nil {
			return err
		}
		after, err := cp.DB.Stats(ctx)
		if err == nil {
			err = bench.FoldLog(ctx, cp.DB)
		}
		folded, statErr := cp.DB.Stats(ctx)
		if before.DatabaseBytes != nil && folded.DatabaseBytes != nil {
			r.Metrics = append(r.Metrics, result.Metric{Value: float64(*folded.DatabaseBytes-*before.DatabaseBytes) / 1e6, Unit: "growth-MB"})
		}
		if after.WALBytes != nil {
			r.Metrics = append(r.Metrics, result.Metric{Value: float64(*after.WALBytes) / 1e6, Unit: "wal-MB"})
		}
		return errors.Join(err, statErr)
	})
}
