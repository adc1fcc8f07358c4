package experiment

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
)

// commitLimit is what the 99th percentile of commits must stay under.
const commitLimit = 2 * time.Second

// readers is how many connections read beside a writer.
const readers = 10

// A beside is writes with reads beside them; ceiling, as the reads, searches for the
// most of them that fit.
type beside struct{ rows, reads float64 }

const ceiling = -1

// The user's documents' steps, and the lower end of what a first version must carry.
var combinedLoads = []beside{{seedRowRate, 0}, {seedRowRate, 100}, {seedRowRate, 1_000}, {seedRowRate, 5_000}, {10_000, 1_000}, {seedRowRate, ceiling}}

func besides(l *Lab) (list []variant, _ error) {
	for _, layout := range l.layouts() {
		for _, b := range combinedLoads {
			qps := ftoa(b.reads)
			if b.reads == ceiling {
				qps = "ceiling"
			}
			c := l.onBase(layout, "mix", mix.A, "rate", ftoa(b.rows), "qps", qps)
			list = append(list, variant{"Combined", c, func(ctx context.Context, r *result.Record) error {
				if b.reads == ceiling {
					return l.ceiling(ctx, layout, r)
				}
				_, err := l.beside(ctx, layout, b, r)
				return err
			}})
		}
	}
	return list, nil
}

// beside runs commits of so many rows a second with so many reads of mix A, and
// tells whether both kept up: commits under their limit, reads not skipped.
func (l *Lab) beside(ctx context.Context, layout string, b beside, r *result.Record) (kept bool, err error) {
	o := l.storeOptions()
	o.Readers = readers
	err = l.withMendoza(ctx, layout, l.Scale, o, r, func(d *mendoza, cp *bench.Copy) error {
		if b.reads == 0 {
			kept = true
			return l.onRest(ctx, d, cp, b.rows, l.Phase, r)
		}
		every, err := l.every(d, b.rows)
		if err != nil {
			return err
		}
		oracle, err := l.oracle(d) // of its own: it follows the blocks
		if err != nil {
			return err
		}
		m, err := mix.New(mix.A, oracle)
		if err != nil {
			return err
		}
		read, err := l.together(ctx, cp, bench.CommitConfig{Blocks: d.Rest(), Every: every}, m, b.reads, r)
		put(r, milliseconds(r.Latency("all").P99), "read-p99-ms")
		kept = r.Latency("commit").P99 < commitLimit && read.Rate() > 0.95*b.reads
		return err
	})
	return kept, err
}

// together runs commits with so many reads a second beside them, and records both
// and samples.
func (l *Lab) together(ctx context.Context, cp *bench.Copy, writes bench.CommitConfig, m mix.Reads, qps float64, r *result.Record) (*pace.Outcome, error) {
	writes.For, writes.WarmUp = l.Phase, l.warmUp()
	sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats, Files: []string{cp.Dir}})
	wrote, read, err := bench.Combined(ctx, cp.Entities, writes, bench.ReadMixConfig{Mix: m, Rate: qps, Config: l.loop(readers, 0)})
	samples := sampler.Stop()
	commit := addLatency(r, "commit", wrote.All())
	addLatency(r, "all", read.All())
	r.Latencies = append(r.Latencies, read.Distributions()...)
	r.Metrics = append(append(r.Metrics, commit.Metrics("")...), read.Metrics()...)
	put(r, wrote.RowRate(), "rows/s")
	addSamples(r, samples, wrote.Started, wrote.Seconds())
	return read, err
}

// ceilingSteps halve what is not known of the ceiling, on a logarithmic scale:
// six find it within some 6 %.
const (
	ceilingSteps = 5
	ceilingLow   = 100
	ceilingHigh  = 20_000
)

// ceiling searches for the highest rate of reads at which commits and reads keep
// up. The record is that of the highest that did; the notes have the others.
func (l *Lab) ceiling(ctx context.Context, layout string, r *result.Record) error {
	low, high := 0.0, float64(ceilingHigh)
	next := math.Sqrt(ceilingLow * ceilingHigh)
	for range ceilingSteps {
		qps := math.Round(next)
		try := &result.Record{Experiment: r.Experiment, Name: r.Name, Config: r.Config.With("qps", ftoa(qps))}
		kept, err := l.beside(ctx, layout, beside{seedRowRate, qps}, try)
		if err != nil {
			return err
		}
		word := "did not keep up"
		if kept {
			low, word = qps, "kept up"
			r.Metrics, r.Latencies, r.Timeline, r.Marks, r.Manifest = try.Metrics, try.Latencies, try.Timeline, try.Marks, try.Manifest
		} else {
			high = qps
		}
		got, _ := try.Metric("qps")
		p99, _ := try.Metric("p99-ms")
		r.Notes = append(r.Notes, fmt.Sprintf("%.0f reads/s %s: %.0f were answered, commits p99 %.0f ms", qps, word, got, p99))
		next = math.Sqrt(max(low, ceilingLow/2) * high)
	}
	put(r, low, "ceiling-qps")
	return nil
}

// grown measures f at each scale of the base profile that was asked for, or at parts of
// the lab's.
func grown(name string, f func(l *Lab, ctx context.Context, layout string, scale float64, r *result.Record) error) func(*Lab) ([]variant, error) {
	return func(l *Lab) (list []variant, _ error) {
		scales := l.Sizes
		if len(scales) == 0 {
			scales = []float64{0.25 * l.Scale, l.Scale, 4 * l.Scale}
		}
		for _, layout := range l.layouts() {
			for _, scale := range scales {
				c := l.onBase(layout).With("scale", ftoa(scale))
				list = append(list, variant{name, c, func(ctx context.Context, r *result.Record) error { return f(l, ctx, layout, scale, r) }})
			}
		}
		return list, nil
	}
}

// degradation measures reads of all mixes and then commits, on one size.
func (l *Lab) degradation(ctx context.Context, layout string, scale float64, r *result.Record) error {
	return l.withMendoza(ctx, layout, scale, l.storeOptions(), r, func(d *mendoza, cp *bench.Copy) error {
		oracle, err := l.oracle(d)
		if err != nil {
			return err
		}
		for _, name := range mix.Names {
			m, err := mix.New(name, oracle)
			if err != nil {
				return err
			}
			out, err := bench.ReadMix(ctx, cp.Entities, bench.ReadMixConfig{Mix: m, Config: l.loop(1, shortReads)})
			if err != nil {
				return err
			}
			all := addLatency(r, "mix-"+name, out.All())
			put(r, out.Capacity(), "qps-"+name)
			put(r, milliseconds(all.P99), "p99-ms-"+name)
		}
		return l.onRest(ctx, d, cp, seedRowRate, l.Phase, r)
	})
}

// loadChecks is what a load of scale 1 is checked by: twice some 300 bytes an entity.
const loadChecks = 600 << 20

// load fills a new store. What checks it grows beside it, so there is room for that first.
func (l *Lab) load(ctx context.Context, layout string, scale float64, r *result.Record) error {
	m, err := l.mendoza(layout, scale, productionBlock)
	if err != nil {
		return err
	}
	l.added = int64(scale * loadChecks)
	if err := memlimit.Resize(l.Memory + l.added); err != nil {
		return err
	}
	return l.withStore(ctx, "", layout, l.storeOptions(), r, func(db *database, ents *store.Entities) error {
		db.probed(r)
		ready, err := m.Fill(ctx, ents)
		if err != nil {
			return err
		}
		put(r, ready.Seconds, "load-s")
		put(r, float64(ready.Counts.Rows())/ready.Seconds, "rows/s")
		return db.sizes(ctx, int(ready.Counts.Rows()), "B/row", r)
	})
}
