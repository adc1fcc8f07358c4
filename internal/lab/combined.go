package lab

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/internal/report"
)

// commitLimit is the maximum 99th percentile of commits.
const commitLimit = 2 * time.Second

// readers is how many connections read while a writer works.
const readers = 10

// concurrent is a load of writes and reads at the same time, both per second.
// For the reads, ceiling means to search for the highest sustainable rate, and
// closed means a closed loop.
type concurrent struct{ rows, reads float64 }

const (
	ceiling = -1
	closed  = -2
)

// The load steps of the user's documents, and the lower end of a first
// version's load.
var combinedLoads = []concurrent{{ArkivRowRate, 0}, {ArkivRowRate, 100}, {ArkivRowRate, 1_000}, {ArkivRowRate, 5_000}, {10_000, 1_000}, {ArkivRowRate, ceiling}}

func besides(l *Lab) ([]Variant, error) {
	return l.besides("Combined", []float64{l.Scale}, combinedLoads)
}

// frontierRates are write rates in rows a second, starting without writes.
var frontierRates = []float64{0, 2_000, ArkivRowRate, 10_000, 25_000, 50_000}

// frontier measures the clients' reads a second at each write rate.
func frontier(l *Lab) ([]Variant, error) {
	var loads []concurrent
	for _, rate := range l.RatesOr(frontierRates...) {
		loads = append(loads, concurrent{rate, closed})
	}
	return l.besides("Frontier", l.scales(), loads)
}

// firstVersionScale is the scale of a first version, which has 621,000
// entities.
const firstVersionScale = 621_000. / 800_000

func firstVersion(l *Lab) ([]Variant, error) {
	scale := firstVersionScale * l.Scale
	if l.Source != "" {
		scale = l.Scale
	}
	return l.besides("V1", []float64{scale}, firstVersionLoads())
}

// firstVersionLoads are the loads of a first version.
func firstVersionLoads() (loads []concurrent) {
	for _, load := range report.FirstVersion {
		loads = append(loads, concurrent{load[0], load[1]})
	}
	return loads
}

func (l *Lab) besides(name string, scales []float64, loads []concurrent) (list []Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		for _, scale := range scales {
			for _, b := range loads {
				list = append(list, b.variant(l, name, l.OnBase(layout, scale), scale))
			}
		}
	}
	return list, nil
}

func (b concurrent) variant(l *Lab, name string, keys Keys, scale float64) Variant {
	keys = keys.With("mix", l.mixes()[0]).With("rate", Ftoa(b.rows))
	v := Variant{Name: name, Keys: keys, Cost: BaseCost(scale, 1, 0), Run: func(t *Trial, ctx context.Context) error {
		_, err := t.withReads(ctx, b)
		return err
	}}
	switch b.reads {
	case closed:
	case ceiling:
		v.Keys, v.Run, v.Phases = keys.With("qps", "ceiling"), (*Trial).ceiling, ceilingSteps
	default:
		v.Keys = keys.With("qps", Ftoa(b.reads))
	}
	return v
}

// withReads runs commits at a rate of rows together with reads of a mix at
// their rate. It reports whether both kept up: commits stayed under their
// limit, and no read was skipped.
func (t *Trial) withReads(ctx context.Context, b concurrent) (kept bool, err error) {
	t.Store.Readers = readers
	err = t.WithBase(ctx, func() error {
		if b.reads == 0 {
			kept = true
			return t.onRest(ctx, b.rows, t.Phase)
		}
		m, err := t.mixOf(t.mixes()[0])
		if err != nil {
			return err
		}
		wrote, read, err := t.readAndCommit(ctx, b, m)
		kept = err == nil && wrote.All().Quantile(99) < commitLimit && read.Rate() > 0.95*b.reads
		return err
	})
	return kept, err
}

// mixOf returns a mix with a separate oracle, which follows the written blocks.
func (t *Trial) mixOf(name string) (mix.Reads, error) {
	oracle, err := t.Oracle(t.Data)
	if err != nil {
		return nil, err
	}
	return mix.New(name, oracle)
}

// readAndCommit runs commits of the blocks after the data set concurrently with
// reads. Without a write rate there are no commits; without a read rate the
// reads run in a closed loop. It records both. Units of commits have no prefix.
// Units of reads begin with the reads' name, except the rate and the numbers of
// late and skipped reads.
func (t *Trial) readAndCommit(ctx context.Context, b concurrent, m mix.Reads) (wrote bench.Result, read *pace.Outcome, err error) {
	writes := bench.CommitConfig{Blocks: t.Data.Rest(), RowRate: b.rows, Config: pace.Config{Duration: t.Phase, WarmUp: t.warmUp()}}
	reading := bench.ReadMixConfig{Mix: m, Config: t.Loop(readers, max(b.reads, 0), 0)}
	err = t.Timed(ctx, nil, func() (*pace.Outcome, error) {
		if b.rows == 0 {
			wrote.Outcome = new(pace.Outcome)
			read, err = bench.ReadMix(ctx, t.Entities, reading)
		} else {
			wrote, read, err = bench.Combined(ctx, t.Entities, writes, reading)
		}
		commits, reads := wrote.All(), read.All()
		t.Count += commits.Count()
		t.Metrics = slices.Concat(t.Metrics, commits.Metrics(""), reads.Metrics("read-"), read.Metrics())
		t.Put(wrote.RowRate(), "rows/s")
		t.Put(float64(wrote.Rows), "rows")
		t.Put(float64(wrote.Late), "commit-late")
		t.Put(float64(wrote.Skipped), "commit-skipped")
		t.Kind("commit", commits)
		t.Kind("all", reads)
		t.Kinds = append(t.Kinds, read.Kinds...)
		t.checking(read)
		if b.rows == 0 {
			return read, err
		}
		return wrote.Outcome, err
	})
	return wrote, read, err
}

// ceilingSteps is how often the unknown range of the ceiling is halved, on a
// logarithmic scale.
const (
	ceilingSteps = 5
	ceilingLow   = 100
	ceilingHigh  = 20_000
)

// ceiling searches for the highest rate of reads at which commits and reads
// keep up. The record has the figures at that rate; the notes list the other
// rates.
func (t *Trial) ceiling(ctx context.Context) error {
	begun := *t.Record
	low, high, best, notes := 0.0, float64(ceilingHigh), begun, []string(nil)
	for range ceilingSteps {
		qps := math.Round(math.Sqrt(max(low, ceilingLow/2) * high))
		*t.Record = Record{Name: begun.Name, Keys: begun.Keys, Manifest: begun.Manifest}
		kept, err := t.withReads(ctx, concurrent{ArkivRowRate, qps})
		if err != nil {
			*t.Record = begun
			return err
		}
		if kept {
			low, best = qps, *t.Record
		} else {
			high = qps
		}
		got, _ := t.Metric("qps")
		p99, _ := t.Metric("p99-ms")
		notes = append(notes, fmt.Sprintf("%.0f reads/s asked, kept up %t: %.0f were answered, commits p99 %.0f ms", qps, kept, got, p99))
	}
	*t.Record = best
	t.Notes = append(t.Notes, notes...)
	t.Put(low, "ceiling-qps")
	return nil
}

// atSizes plans run at each requested scale, or else at fractions and multiples
// of the lab's scale. Phases and loads estimate its cost.
func atSizes(name string, phases, loads float64, run Run) func(*Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		least := 0.25
		if l.Source != "" { // which is taken whole
			least = 2
		}
		return across(l.LayoutsOr(), orDefault(l.Sizes, least*l.Scale, l.Scale, 4*l.Scale), func(layout string, scale float64) Variant {
			return Variant{Name: name, Keys: l.OnBase(layout, scale), Cost: BaseCost(scale, phases, loads), Run: run}
		})
	}
}

// degradation measures reads of all mixes and then commits, at one size.
func (t *Trial) degradation(ctx context.Context) error {
	return t.WithBase(ctx, func() error { return t.readsThenWrites(ctx, t.mixes()) })
}

// readsThenWrites measures reads of some mixes by one client, with the mix as a
// suffix of the units, and then commits.
func (t *Trial) readsThenWrites(ctx context.Context, mixes []string) error {
	oracle, err := t.Oracle(t.Data)
	if err != nil {
		return err
	}
	for _, name := range mixes {
		m, err := mix.New(name, oracle)
		if err != nil {
			return err
		}
		phase := *t
		phase.Record = new(Record) // samples belong to the commits alone
		err = phase.Timed(ctx, t.warmed(m, 1, shortReads), func() (*pace.Outcome, error) {
			out, err := bench.ReadMix(ctx, t.Entities, bench.ReadMixConfig{Mix: m, Config: t.Loop(1, 0, shortReads)})
			all := out.All()
			t.Put(out.Rate(), "qps-"+name)
			t.Put(Milliseconds(all.Quantile(99)), "p99-ms-"+name)
			t.Kind("mix-"+name, all)
			return out, err
		})
		if err != nil {
			return err
		}
		for _, unit := range []string{"resident-before", "disk-reads/s"} {
			if v, has := phase.Metric(unit); has {
				t.Put(v, unit+"-"+name)
			}
		}
	}
	return t.onRest(ctx, ArkivRowRate, t.Phase)
}

// loadChecks is the memory that the checks of a load need at scale 1: twice
// some 300 bytes an entity.
const loadChecks = 600 << 20

// roomToLoad adds the memory for the checks of a load to the budget.
func (l *Lab) roomToLoad(scale float64) error {
	return l.add(int64(l.worth(scale) * loadChecks))
}

// withLoaded runs f on a new store that is filled with the base profile. It
// adds the memory for the checks to the budget first, because they grow with
// the profile.
func (t *Trial) withLoaded(ctx context.Context, f func(ready bench.Ready) error) error {
	d, err := t.base()
	if err == nil {
		err = t.roomToLoad(t.scale())
	}
	if err != nil {
		return err
	}
	return t.WithLayout(ctx, func() error {
		t.Data = d
		ready, err := d.Fill(ctx, t.Entities)
		if err != nil {
			return err
		}
		return f(ready)
	})
}

// load measures the filling of a new store.
func (t *Trial) load(ctx context.Context) error {
	return t.withLoaded(ctx, func(ready bench.Ready) error {
		t.Put(ready.Seconds, "load-s")
		t.Put(float64(ready.Counts.Rows())/ready.Seconds, "rows/s")
		return t.size(ctx, int(ready.Counts.Rows()), "B/row")
	})
}
