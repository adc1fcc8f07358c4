package lab

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/internal/report"
)

// commitLimit is the limit of the 99th percentile of commits.
const commitLimit = 2 * time.Second

// readers is how many connections read while a writer works.
const readers = 10

// concurrent is a load of writes and reads at the same time, both a second. As the reads, ceiling
// searches for the most that fit, and closed has as many as readers get that wait for their answers.
type concurrent struct{ rows, reads float64 }

const (
	ceiling = -1
	closed  = -2
)

// The steps of the user's documents, and the lower end of a first version's
// load.
var combinedLoads = []concurrent{{ArkivRowRate, 0}, {ArkivRowRate, 100}, {ArkivRowRate, 1_000}, {ArkivRowRate, 5_000}, {10_000, 1_000}, {ArkivRowRate, ceiling}}

func besides(l *Lab) ([]Variant, error) {
	return l.besides("Combined", []float64{l.Scale}, combinedLoads), nil
}

// frontierRates are of rows a second, from none on.
var frontierRates = []float64{0, 2_000, ArkivRowRate, 10_000, 25_000, 50_000}

// frontier measures the reads a second of clients at each rate of writes.
func frontier(l *Lab) ([]Variant, error) {
	var loads []concurrent
	for _, rate := range l.RatesOr(frontierRates...) {
		loads = append(loads, concurrent{rate, closed})
	}
	return l.besides("Frontier", l.sizes(), loads), nil
}

// firstVersionScale is that of a first version, which has 621,000 entities.
const firstVersionScale = 621_000. / 800_000

func firstVersion(l *Lab) ([]Variant, error) {
	scale := firstVersionScale * l.Scale
	if l.Source != "" {
		scale = l.Scale
	}
	var loads []concurrent
	for _, load := range report.FirstVersion {
		loads = append(loads, concurrent{load[0], load[1]})
	}
	return l.besides("V1", []float64{scale}, loads), nil
}

func (l *Lab) besides(name string, scales []float64, loads []concurrent) (list []Variant) {
	for _, layout := range l.LayoutsOr() {
		for _, scale := range scales {
			for _, b := range loads {
				c, cost := l.OnBase(layout, scale, "mix", l.mixes()[0], "rate", Ftoa(b.rows)), baseCost(scale, 1, 0)
				run := func(ctx context.Context, r *Record) error { _, err := l.withReads(ctx, layout, scale, b, r); return err }
				switch b.reads {
				case ceiling:
					cost.Phases = ceilingSteps
					c, run = c.With("qps", "ceiling"), func(ctx context.Context, r *Record) error { return l.ceiling(ctx, layout, r) }
				case closed:
				default:
					c = c.With("qps", Ftoa(b.reads))
				}
				list = append(list, Variant{Name: name, Keys: c, Cost: cost, Run: run})
			}
		}
	}
	return list
}

// withReads runs commits of so many rows a second with so many reads of a mix,
// and reports whether both kept up: commits under their limit, reads not
// skipped.
func (l *Lab) withReads(ctx context.Context, layout string, scale float64, b concurrent, r *Record) (kept bool, err error) {
	o := l.StoreOptions()
	o.Readers = readers
	err = l.WithBase(ctx, layout, scale, o, r, func(d *bench.Dataset, cp *bench.Copy) error {
		if b.reads == 0 {
			kept = true
			return l.onRest(ctx, d, cp, b.rows, l.Phase, r)
		}
		m, err := l.mixOf(l.mixes()[0], d)
		if err != nil {
			return err
		}
		wrote, read, err := l.together(ctx, cp, bench.CommitConfig{Blocks: d.Rest(), RowRate: b.rows}, m, max(b.reads, 0), r)
		kept = err == nil && wrote.All().Quantile(99) < commitLimit && read.Rate() > 0.95*b.reads
		return err
	})
	return kept, err
}

// mixOf is a mix with a separate oracle, which follows the written blocks.
func (l *Lab) mixOf(name string, d *bench.Dataset) (mix.Reads, error) {
	oracle, err := l.Oracle(d)
	if err != nil {
		return nil, err
	}
	return mix.New(name, oracle)
}

// together runs commits, none where they have no rate, and at the same time so
// many reads a second, zero for as many as there can be, and records both. The
// commits' figures have no prefix; the reads' figures have the reads' name
// before them, but for the rate and the late or skipped ones.
func (l *Lab) together(ctx context.Context, cp *bench.Copy, writes bench.CommitConfig, m mix.Reads, qps float64, r *Record) (wrote bench.Result, read *pace.Outcome, err error) {
	writes.Duration, writes.WarmUp = l.Phase, l.warmUp()
	err = l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
		reading := bench.ReadMixConfig{Mix: m, Config: l.Loop(readers, qps, 0)}
		if writes.RowRate == 0 {
			wrote.Outcome = new(pace.Outcome)
			read, err = bench.ReadMix(ctx, cp.Entities, reading)
		} else {
			wrote, read, err = bench.Combined(ctx, cp.Entities, writes, reading)
		}
		commits, reads := wrote.All(), read.All()
		r.Count += commits.Count()
		r.Metrics = append(append(r.Metrics, commits.Metrics("")...), reads.Metrics("read-")...)
		r.Metrics = append(r.Metrics, read.Metrics()...)
		r.Put(wrote.RowRate(), "rows/s")
		r.Put(float64(wrote.Rows), "rows")
		r.Put(float64(wrote.Late), "commit-late")
		r.Put(float64(wrote.Skipped), "commit-skipped")
		r.Kind("commit", commits)
		r.Kind("all", reads)
		r.Kinds = append(r.Kinds, read.Kinds...)
		if writes.RowRate == 0 {
			return read, err
		}
		return wrote.Outcome, err
	})
	return wrote, read, err
}

// ceilingSteps halve the unknown range of the ceiling, on a logarithmic scale.
const (
	ceilingSteps = 5
	ceilingLow   = 100
	ceilingHigh  = 20_000
)

// ceiling searches for the highest rate of reads at which commits and reads keep
// up. The record is that of the highest that did; the notes have the others.
func (l *Lab) ceiling(ctx context.Context, layout string, r *Record) error {
	low, high, best, notes := 0.0, float64(ceilingHigh), *r, []string(nil)
	for range ceilingSteps {
		qps := math.Round(math.Sqrt(max(low, ceilingLow/2) * high))
		try := &Record{Name: r.Name, Keys: r.Keys, Manifest: r.Manifest}
		kept, err := l.withReads(ctx, layout, l.Scale, concurrent{ArkivRowRate, qps}, try)
		if err != nil {
			return err
		}
		if kept {
			low, best = qps, *try
		} else {
			high = qps
		}
		got, _ := try.Metric("qps")
		p99, _ := try.Metric("p99-ms")
		notes = append(notes, fmt.Sprintf("%.0f reads/s asked, kept up %t: %.0f were answered, commits p99 %.0f ms", qps, kept, got, p99))
	}
	*r = best
	r.Notes = append(r.Notes, notes...)
	r.Put(low, "ceiling-qps")
	return nil
}

// grown measures f, of the cost of so many phases and loads, at each scale that was asked for, or at parts and multiples of the lab's.
func grown(name string, phases, loads float64, f func(l *Lab, ctx context.Context, layout string, scale float64, r *Record) error) func(*Lab) ([]Variant, error) {
	return func(l *Lab) (list []Variant, _ error) {
		least := 0.25
		if l.Source != "" { // which is taken whole
			least = 2
		}
		for _, layout := range l.LayoutsOr() {
			for _, scale := range given(l.Sizes, least*l.Scale, l.Scale, 4*l.Scale) {
				list = append(list, Variant{Name: name, Keys: l.OnBase(layout, scale), Cost: baseCost(scale, phases, loads), Run: func(ctx context.Context, r *Record) error { return f(l, ctx, layout, scale, r) }})
			}
		}
		return list, nil
	}
}

// degradation measures reads of all mixes and then commits, on one size.
func (l *Lab) degradation(ctx context.Context, layout string, scale float64, r *Record) error {
	return l.WithBase(ctx, layout, scale, l.StoreOptions(), r, func(d *bench.Dataset, cp *bench.Copy) error {
		return l.readsThenWrites(ctx, d, cp, l.mixes(), r)
	})
}

// readsThenWrites measures reads of some mixes by one client, whose units have the mix behind them, and then commits.
func (l *Lab) readsThenWrites(ctx context.Context, d *bench.Dataset, cp *bench.Copy, mixes []string, r *Record) error {
	oracle, err := l.Oracle(d)
	if err != nil {
		return err
	}
	for _, name := range mixes {
		m, err := mix.New(name, oracle)
		if err != nil {
			return err
		}
		of := new(Record) // samples belong to the commits alone
		err = l.phaseAt(ctx, cp, l.warmed(cp, m, 1, shortReads), of, func(ctx context.Context) (*pace.Outcome, error) {
			out, err := bench.ReadMix(ctx, cp.Entities, bench.ReadMixConfig{Mix: m, Config: l.Loop(1, 0, shortReads)})
			all := out.All()
			r.Put(out.Rate(), "qps-"+name)
			r.Put(Milliseconds(all.Quantile(99)), "p99-ms-"+name)
			r.Kind("mix-"+name, all)
			return out, err
		})
		if err != nil {
			return err
		}
		for _, unit := range []string{"resident-before", "disk-reads/s"} {
			if v, has := of.Metric(unit); has {
				r.Put(v, unit+"-"+name)
			}
		}
	}
	return l.onRest(ctx, d, cp, ArkivRowRate, l.Phase, r)
}

// loadChecks is the memory of the checks of a load of scale 1: twice some 300
// bytes an entity.
const loadChecks = 600 << 20

// roomToLoad adds the memory of a load's checks to the budget.
func (l *Lab) roomToLoad(scale float64) error {
	return l.add(int64(l.worth(scale) * loadChecks))
}

// load fills a new store. Its checks grow with it, so room for them is added
// first.
func (l *Lab) load(ctx context.Context, layout string, scale float64, r *Record) error {
	m, err := l.Base(layout, scale, ProductionBlock)
	if err != nil {
		return err
	}
	if err := l.roomToLoad(scale); err != nil {
		return err
	}
	return l.WithNew(ctx, "", layout, l.StoreOptions(), r, func(cp *bench.Copy) error {
		ready, err := m.Fill(ctx, cp.Entities)
		if err != nil {
			return err
		}
		r.Put(ready.Seconds, "load-s")
		r.Put(float64(ready.Counts.Rows())/ready.Seconds, "rows/s")
		return r.sizes(ctx, cp.DB, int(ready.Counts.Rows()), "B/row")
	})
}
