package experiment

import (
	"context"
	"math"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
)

// combined are reads beside writes, and how everything grows with size.
func combined() []Experiment {
	return []Experiment{
		{
			ID: "D4", Title: "Reads beside writes", Layouts: []string{"arkiv"},
			Question: "How many reads a second fit beside 6,000 rows a second of writes, with commits under 2 s?",
			Earlier:  "planned: writes alone, with 100, 1,000 and 5,000 reads a second, and the ceiling by binary search; not measured",
			Run:      besides,
		},
		{
			ID: "D5", Title: "Growth", Layouts: []string{"arkiv"},
			Question: "How do commits and reads slow down as the database grows?",
			Earlier:  "planned: 2x, 5x, 10x of 800,000 entities; not measured",
			Run:      growth,
		},
	}
}

// commitLimit is what the 99th percentile of commits must stay under.
const commitLimit = 2 * time.Second

// readers is how many connections read beside a writer.
const readers = 10

func besides(ctx context.Context, l *Lab) error {
	for _, layout := range l.layouts("arkiv") {
		d, err := l.mendoza(layout, mendozaOptions{merge: productionBlock})
		if err != nil {
			return err
		}
		for _, load := range combinedLoads {
			c := l.combinedConfig(layout, load.rows, ftoa(load.reads))
			err := l.measure(ctx, "Combined", c, func(ctx context.Context, r *result.Record) error {
				_, err := l.beside(ctx, d, load.rows, load.reads, r)
				return err
			})
			if err != nil {
				return err
			}
		}
		err = l.measure(ctx, "Combined", l.combinedConfig(layout, seedRowRate, "ceiling"), func(ctx context.Context, r *result.Record) error {
			return l.ceiling(ctx, d, r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// combinedLoads are the user's documents' steps, and the lower end of what a first
// version must carry.
var combinedLoads = []struct{ rows, reads float64 }{
	{seedRowRate, 0}, {seedRowRate, 100}, {seedRowRate, 1_000}, {seedRowRate, 5_000},
	{10_000, 1_000},
}

func (l *Lab) combinedConfig(layout string, rows float64, qps string) result.Config {
	return l.config("layout", layout, "profile", l.profile(), "durability", string(l.Durability), "scale", ftoa(l.Scale),
		"mix", mix.A, "rate", ftoa(rows), "qps", qps)
}

// beside runs commits of so many rows a second with so many reads of mix A, and
// tells whether both kept up: commits under their limit, reads not skipped.
func (l *Lab) beside(ctx context.Context, d *mendoza, rows, qps float64, r *result.Record) (kept bool, err error) {
	o := l.storeOptions()
	o.Readers = readers
	every, err := d.every(rows)
	if err != nil {
		return false, err
	}
	err = l.withDataset(ctx, d.Dataset, o, r, func(ctx context.Context, cp *bench.Copy) error {
		writes := bench.PacedConfig{Blocks: d.Rest(), Every: every, For: l.Phase, WarmUp: l.warmUp()}
		if qps == 0 {
			kept = true
			return l.paced(ctx, cp, writes, r)
		}
		mixes, err := d.mixes(mix.A) // of its own: it follows the blocks
		if err != nil {
			return err
		}
		read, err := l.together(ctx, cp, writes, mixes[0], qps, r)
		commit, all := r.Latency("commit"), r.Latency("all")
		if read == nil || commit == nil || all == nil {
			return err
		}
		r.Metrics = append(r.Metrics, result.Metric{Value: float64(all.P99) / float64(time.Millisecond), Unit: "read-p99-ms"})
		kept = commit.P99 < commitLimit && read.Rate() > 0.95*qps
		return err
	})
	return kept, err
}

// together runs commits with so many reads a second beside them, and records both
// and samples.
func (l *Lab) together(ctx context.Context, cp *bench.Copy, writes bench.PacedConfig, m mix.Reads, qps float64, r *result.Record) (*pace.Outcome, error) {
	sampler := probe.Start(ctx, probe.Config{Stats: cp.DB.Stats, Files: []string{cp.Dir}})
	wrote, read, err := bench.Combined(ctx, cp.Entities, writes, bench.ReadMixConfig{
		Mix: m, Clients: readers, Rate: qps, For: l.Phase, WarmUp: l.warmUp(), Seed: l.Seed,
	})
	samples := sampler.Stop()
	if wrote.Outcome == nil || read == nil {
		return nil, err
	}
	commit, all := wrote.All().Distribution("commit"), read.All().Distribution("all")
	r.Latencies = append(append(r.Latencies, commit, all), read.Distributions()...)
	r.Metrics = append(append(r.Metrics, commit.Metrics("")...), read.Metrics()...)
	r.Metrics = append(r.Metrics, result.Metric{Value: wrote.RowRate(), Unit: "rows/s"})
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
func (l *Lab) ceiling(ctx context.Context, d *mendoza, r *result.Record) error {
	low, high := float64(0), float64(ceilingHigh)
	next := math.Sqrt(ceilingLow * ceilingHigh)
	for range ceilingSteps {
		try := &result.Record{Experiment: r.Experiment, Name: r.Name, Config: r.Config.With("qps", ftoa(math.Round(next)))}
		kept, err := l.beside(ctx, d, seedRowRate, math.Round(next), try)
		if err != nil {
			return err
		}
		r.Notes = append(r.Notes, note(next, kept, try))
		if kept {
			low = math.Round(next)
			r.Metrics, r.Latencies, r.Timeline, r.Marks, r.Manifest = try.Metrics, try.Latencies, try.Timeline, try.Marks, try.Manifest
		} else {
			high = math.Round(next)
		}
		next = math.Sqrt(max(low, ceilingLow/2) * high)
	}
	r.Metrics = append(r.Metrics, result.Metric{Value: low, Unit: "ceiling-qps"})
	return nil
}

func note(qps float64, kept bool, r *result.Record) string {
	p99, _ := r.Metric("p99-ms")
	got, _ := r.Metric("qps")
	word := "kept up"
	if !kept {
		word = "did not keep up"
	}
	return ftoa(math.Round(qps)) + " reads/s " + word + ": " + ftoa(math.Round(got)) + " were answered, commits p99 " + ftoa(math.Round(p99)) + " ms"
}

// growthSizes are parts of the lab's scale.
var growthSizes = []float64{0.25, 1, 4}

func (l *Lab) sizes() []float64 {
	if len(l.Sizes) > 0 {
		return l.Sizes
	}
	sizes := make([]float64, len(growthSizes))
	for i, part := range growthSizes {
		sizes[i] = part * l.Scale
	}
	return sizes
}

func growth(ctx context.Context, l *Lab) error {
	for _, layout := range l.layouts("arkiv") {
		for _, scale := range l.sizes() {
			d, err := l.mendoza(layout, mendozaOptions{merge: productionBlock, scale: scale})
			if err != nil {
				return err
			}
			c := l.config("layout", layout, "profile", l.profile(), "durability", string(l.Durability), "scale", ftoa(scale))
			err = l.measure(ctx, "Degradation", c, func(ctx context.Context, r *result.Record) error {
				return l.grown(ctx, d, r)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// grown measures reads of all mixes and then commits, on one size.
func (l *Lab) grown(ctx context.Context, d *mendoza, r *result.Record) error {
	mixes, err := d.mixes()
	if err != nil {
		return err
	}
	every, err := d.every(seedRowRate)
	if err != nil {
		return err
	}
	return l.withDataset(ctx, d.Dataset, l.storeOptions(), r, func(ctx context.Context, cp *bench.Copy) error {
		for _, m := range mixes {
			out, err := bench.ReadMix(ctx, cp.Entities, bench.ReadMixConfig{
				Mix: m, Reads: shortReads, For: l.Phase, WarmUp: l.warmUp(), Seed: l.Seed,
			})
			if err != nil {
				return err
			}
			all := out.All().Distribution("mix-" + m.Name())
			r.Latencies = append(r.Latencies, all)
			r.Metrics = append(r.Metrics,
				result.Metric{Value: out.Capacity(), Unit: "qps-" + m.Name()},
				result.Metric{Value: float64(all.P99) / float64(time.Millisecond), Unit: "p99-ms-" + m.Name()})
		}
		return l.paced(ctx, cp, bench.PacedConfig{Blocks: d.Rest(), Every: every, For: l.Phase, WarmUp: l.warmUp()}, r)
	})
}
