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
			Run:      sustain, Changes: true, phases: 4,
		},
		{
			ID: "D2", Title: "Checkpoint stalls", Layouts: []string{"arkiv"},
			Question: "How long are commits that carry a checkpoint, who should run it, and at which size of the log?",
			Earlier:  "asked: wal_autocheckpoint 1,000, 10,000, off; PASSIVE between blocks; background",
			Run:      checkpoints, Changes: true, phases: 10,
		},
		{
			ID: "D3", Title: "Reorgs", Layouts: writeLayouts,
			Question: "What does it cost to delete 500 rows and insert 500 with the same keys, anywhere in the store, over and over, and does the file grow?",
			Earlier:  "asked: for an hour, p99 < 500 ms",
			Run:      reorgs, Changes: true, phases: 1,
		},
	}
}

// load is commits of the base profile.
type load struct {
	rate    float64 // rows a second; 0 is as fast as possible
	options *store.Options
	more    []string // of the configuration
}

func sustain(ctx context.Context, l *Lab) error {
	rates := l.Rates
	if len(rates) == 0 {
		rates = []float64{seedRowRate, 0}
	}
	var loads []load
	for _, rate := range rates {
		name := "max"
		if rate > 0 {
			name = ftoa(rate)
		}
		loads = append(loads, load{rate: rate, options: l.storeOptions(), more: []string{"rate", name}})
	}
	return l.loads(ctx, "Sustained", l.layouts(writeLayouts...), loads)
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
	var loads []load
	if linked, _ := driver.Lookup(l.Engine.Name); !linked.Capabilities.WALCheckpoint { // its own checkpoints cannot be chosen
		loads = []load{{rate: 4 * seedRowRate, options: l.storeOptions(), more: []string{"policy", "engine"}}}
	} else {
		for _, p := range policies {
			o := l.storeOptions()
			o.Checkpoint, o.WALFrames = p.policy, p.frames
			loads = append(loads, load{rate: 4 * seedRowRate, options: o, more: []string{"policy", string(p.policy), "frames", itoa(p.frames)}})
		}
	}
	return l.loads(ctx, "Checkpoint", l.layouts("arkiv"), loads)
}

func (l *Lab) loads(ctx context.Context, name string, layouts []string, loads []load) error {
	return variants[load]{
		name: name, layouts: layouts, values: loads,
		config: func(layout string, v load) result.Config { return l.onBase(layout, v.more...) },
		run:    l.sustain,
	}.measure(ctx, l)
}

// sustain applies what comes after the loaded part of the base profile.
func (l *Lab) sustain(ctx context.Context, layout string, v load, r *result.Record) error {
	return l.withMendoza(ctx, layout, mendozaOptions{}, v.options, r, func(ctx context.Context, d *mendoza, cp *bench.Copy) error {
		return l.onRest(ctx, d, cp, v.rate, 2*l.Phase, r)
	})
}

// onRest runs commits of so many rows a second of what comes after the loaded part.
func (l *Lab) onRest(ctx context.Context, d *mendoza, cp *bench.Copy, rate float64, length time.Duration, r *result.Record) error {
	every, err := d.every(rate)
	if err != nil {
		return err
	}
	return l.paced(ctx, cp, bench.PacedConfig{Blocks: d.Rest(), Every: every, For: length}, r)
}

// paced runs commits with samples beside them. Commits that were in a
// checkpoint, by the engine's counters, are a kind of their own.
func (l *Lab) paced(ctx context.Context, cp *bench.Copy, cfg bench.PacedConfig, r *result.Record) error {
	split := newSplit(ctx, cp.DB)
	cfg.Observe, cfg.WarmUp = split.observe, l.warmUp()
	sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats, Files: []string{cp.Dir}})
	done, err := bench.Commits(ctx, cp.Entities, cfg)
	if err == nil && cfg.Every == 0 {
		err = settle(ctx, cp.Entities, done, r)
	}
	samples := sampler.Stop()
	addOutcome(r, done.Outcome)
	put(r, done.RowRate(), "rows/s")
	put(r, float64(done.Entities)/max(done.Elapsed.Seconds(), 1e-9), "ent/s")
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
	put(r, float64(done.Rows)/max(done.Elapsed.Seconds()+took, 1e-9), "settled-rows/s")
	put(r, took, "settle-s")
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
	addLatency(r, "with-checkpoint", s.with)
	addLatency(r, "without-checkpoint", s.without)
}

// addLatency adds a kind of operations, if there were any.
func addLatency(r *result.Record, kind string, rec *latency.Recorder) {
	if rec.Count() > 0 {
		r.Latencies = append(r.Latencies, rec.Distribution(kind))
	}
}

func reorgs(ctx context.Context, l *Lab) error {
	return variants[struct{}]{
		name: "Reorg", layouts: l.layouts(writeLayouts...), values: []struct{}{{}},
		config: func(layout string, _ struct{}) result.Config { return l.onBase(layout, "for", l.Phase.String()) },
		run:    l.reorg,
	}.measure(ctx, l)
}

// reorgPayload is the size of payloads in the base profile.
const reorgPayload = 5 << 10

func (l *Lab) reorg(ctx context.Context, layout string, _ struct{}, r *result.Record) error {
	return l.withMendoza(ctx, layout, mendozaOptions{}, l.storeOptions(), r, func(ctx context.Context, _ *mendoza, cp *bench.Copy) error {
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
		addLatency(r, "arrival", res.Arrival.Latency)
		addLatency(r, "rewind", res.Rewind.Latency)
		addLatency(r, "commit", res.Commit.Latency)
		addSamples(r, samples, started, line.Seconds(elapsed))
		addTrend(r)
		if err == nil {
			err = addGrowth(ctx, cp.DB, before, r)
		}
		return err
	})
}

// addGrowth adds by how much the database grew, its log folded into it.
func addGrowth(ctx context.Context, db *store.DB, before driver.Stats, r *result.Record) error {
	if err := bench.FoldLog(ctx, db); err != nil {
		return err
	}
	after, err := db.Stats(ctx)
	if before.DatabaseBytes != nil && after.DatabaseBytes != nil {
		put(r, float64(*after.DatabaseBytes-*before.DatabaseBytes)/1e6, "growth-MB")
	}
	return err
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
		from, to := stat.Summarize(first).Median, stat.Summarize(last).Median
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
	f := float64(d)
	return &f
}
