package gobench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/internal/coreset"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// RebacFlags are what the benchmarks of permissions can be told beside Flags.
type RebacFlags struct {
	size string
	set  *flag.FlagSet
}

// RegisterRebacFlags adds the flags to a set.
func RegisterRebacFlags(set *flag.FlagSet) *RebacFlags {
	f := &RebacFlags{set: set}
	set.StringVar(&f.size, "varve.rebac", "", "size of the permission data: tiny, small or full, or several times one as in fullx2 (default small, with -short tiny)")
	return f
}

func (f *RebacFlags) parse() (rebac.Size, driver.Durability, error) {
	name := f.size
	switch {
	case name == "" && testing.Short():
		name = "tiny"
	case name == "":
		name = "small"
	}
	size, err := rebac.ParseSize(name)
	if err != nil {
		return size, "", fmt.Errorf("-varve.rebac: %w", err)
	}
	durability := driver.Durable
	if other := f.set.Lookup("varve.durability"); other != nil {
		if durability, err = driver.ParseDurability(other.Value.String()); err != nil {
			return size, "", fmt.Errorf("-varve.durability: %w", err)
		}
	}
	return size, durability, nil
}

// RunRebac measures the scenarios on one engine, each with both closures and one
// client, an answer an operation; before them ingest and closure, once in each
// operation.
func RunRebac(b *testing.B, e bench.Engine, f *RebacFlags) {
	coreset.Skip(b)
	size, durability, err := f.parse()
	must(b, err)
	needs(b, e, durability)
	d, err := rebac.Generate(size, seed)
	must(b, err)
	o := rebac.NewOracle(d)
	scenarios, err := rebac.Scenarios(d, o)
	must(b, err)
	name := "engine=" + e.Name + "/layout=rebac/profile=" + size.Name + "/durability=" + string(durability)
	b.Run(name, func(b *testing.B) {
		opts := store.Options{Durability: durability, Readers: 1}
		b.Run("op=ingest", func(b *testing.B) { benchIngest(b, e, d, opts) })
		s := fillRebac(b, e, d, opts)
		b.Run("op=closure", func(b *testing.B) { benchClosure(b, s, o) })
		for _, c := range rebac.Closures {
			for i := range scenarios {
				b.Run("op="+scenarios[i].Name+"/closure="+string(c), func(b *testing.B) { benchScenario(b, s, &scenarios[i], c) })
			}
		}
	})
}

// openRebac opens a new database that is closed when the test ends.
func openRebac(tb testing.TB, e bench.Engine, opts store.Options) (*rebac.Store, *store.DB) {
	tb.Helper()
	db, err := store.Open(context.Background(), e.URL(tb.TempDir()), &opts)
	must(tb, err)
	tb.Cleanup(func() { must(tb, db.Close()) })
	s, err := rebac.New(db)
	must(tb, err)
	return s, db
}

func fillRebac(tb testing.TB, e bench.Engine, d *rebac.Data, opts store.Options) *rebac.Store {
	tb.Helper()
	s, db := openRebac(tb, e, opts)
	_, err := s.Ingest(tb.Context(), d, 0)
	must(tb, err)
	_, err = s.BuildClosure(tb.Context())
	must(tb, err)
	must(tb, bench.FoldLog(tb.Context(), db))
	return s
}

func benchIngest(b *testing.B, e bench.Engine, d *rebac.Data, opts store.Options) {
	b.ReportAllocs()
	var last rebac.IngestResult
	for b.Loop() {
		b.StopTimer()
		s, _ := openRebac(b, e, opts)
		b.StartTimer()
		var err error
		last, err = s.Ingest(b.Context(), d, 0)
		must(b, err)
	}
	b.ReportMetric(last.Rate(), "rows/s")
	report(b, []bench.Metric{milliseconds(last.Batches.P95, "batch-p95-ms"), milliseconds(last.Indexes, "index-ms")})
}

func benchClosure(b *testing.B, s *rebac.Store, o *rebac.Oracle) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := s.BuildClosure(b.Context())
		must(b, err)
	}
	must(b, s.CheckClosure(b.Context(), o))
}

func benchScenario(b *testing.B, s *rebac.Store, scenario *rebac.Scenario, c rebac.Closure) {
	b.ReportAllocs()
	l, err := s.Ask(b.Context(), scenario, c, b)
	must(b, err)
	report(b, []bench.Metric{
		milliseconds(l.P50, "p50-ms"), milliseconds(l.P95, "p95-ms"), milliseconds(l.P99, "p99-ms"), milliseconds(l.Max, "max-ms"),
	})
}

// CheckRebac checks every answer on one engine: all that there is to ask of the tiny
// data set, with both closures. Checks bounds those of single pairs on engines
// that take a millisecond for one; 0 is all. A listing of each user and each
// resource covers all pairs in any case.
func CheckRebac(t *testing.T, e bench.Engine, checks int) {
	if testing.Short() {
		checks = 100
	}
	d, err := rebac.Generate(rebac.Tiny, seed)
	must(t, err)
	o := rebac.NewOracle(d)
	s := fillRebac(t, e, d, store.Options{Durability: driver.Durable, Readers: 1})
	for _, c := range rebac.Closures {
		t.Run("closure="+string(c), func(t *testing.T) {
			must(t, s.Verify(t.Context(), d, o, c, rebac.VerifyConfig{Checks: checks}))
		})
	}
	t.Run("wrong", func(t *testing.T) { checkRebacNotices(t, s, d, o) })
}

// checkRebacNotices: an answer that is not the oracle's is found, for each closure, by
// Verify and by Measure.
func checkRebacNotices(t *testing.T, s *rebac.Store, d *rebac.Data, o *rebac.Oracle) {
	other, err := rebac.Generate(rebac.Tiny, seed+1)
	must(t, err)
	scenarios, err := rebac.Scenarios(d, o)
	must(t, err)
	for _, c := range rebac.Closures {
		err := s.Verify(t.Context(), other, rebac.NewOracle(other), c, rebac.VerifyConfig{Checks: 1})
		if !errors.Is(err, bench.ErrMismatch) {
			t.Errorf("closure %s: answers of other data pass: %v", c, err)
		}
		for i := range scenarios {
			wrong := scenarios[i]
			wrong.Questions = slices.Clone(wrong.Questions)
			for q := range wrong.Questions {
				wrong.Questions[q].Want.Sum++
			}
			_, err := s.Measure(t.Context(), rebac.MeasureConfig{Scenario: &wrong, Closure: c, Duration: time.Millisecond})
			if !errors.Is(err, bench.ErrMismatch) {
				t.Errorf("closure %s, %s: a wrong answer passes: %v", c, wrong.Name, err)
			}
		}
	}
}
