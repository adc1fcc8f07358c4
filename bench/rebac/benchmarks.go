package rebac

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Flags are what the benchmarks can be told beside the flags of package bench.
type Flags struct {
	size string
	set  *flag.FlagSet
}

// RegisterFlags adds the flags to a set.
func RegisterFlags(set *flag.FlagSet) *Flags {
	f := &Flags{set: set}
	set.StringVar(&f.size, "varve.rebac", "", "size of the permission data: tiny, small or full, or several times one as in fullx2 (default small, with -short tiny)")
	return f
}

func (f *Flags) parse() (Size, driver.Durability, error) {
	name := f.size
	switch {
	case name == "" && testing.Short():
		name = "tiny"
	case name == "":
		name = "small"
	}
	size, err := ParseSize(name)
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

// benchSeed is that of all benchmarks and tests.
const benchSeed = 1

// Bench measures the scenarios on one engine, each with both closures and one
// client, an answer an operation; before them ingest and closure, once in each
// operation.
func Bench(b *testing.B, e bench.Engine, f *Flags) {
	size, durability, err := f.parse()
	must(b, err)
	linked, ok := driver.Lookup(e.Name)
	if !ok {
		b.Fatalf("engine %q is not linked", e.Name)
	}
	if !slices.Contains(linked.Capabilities.Durabilities, durability) {
		b.Skipf("engine %s has no durability %s", e.Name, durability)
	}
	d, err := Generate(size, benchSeed)
	must(b, err)
	o := NewOracle(d)
	scenarios, err := Scenarios(d, o)
	must(b, err)
	name := "engine=" + e.Name + "/layout=rebac/profile=" + size.Name + "/durability=" + string(durability)
	b.Run(name, func(b *testing.B) {
		opts := store.Options{Durability: durability, Readers: 1}
		b.Run("op=ingest", func(b *testing.B) { benchIngest(b, e, d, opts) })
		s := openFilled(b, e, d, opts)
		b.Run("op=closure", func(b *testing.B) { benchClosure(b, s, o) })
		for _, c := range Closures {
			for i := range scenarios {
				b.Run("op="+scenarios[i].Name+"/closure="+string(c), func(b *testing.B) { benchScenario(b, s, &scenarios[i], c) })
			}
		}
	})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// open opens a new database that is closed when the test ends.
func open(tb testing.TB, e bench.Engine, opts store.Options) *Store {
	tb.Helper()
	db, err := store.Open(context.Background(), e.URL(tb.TempDir()), &opts)
	must(tb, err)
	tb.Cleanup(func() { must(tb, db.Close()) })
	s, err := New(db)
	must(tb, err)
	return s
}

func openFilled(tb testing.TB, e bench.Engine, d *Data, opts store.Options) *Store {
	tb.Helper()
	s := open(tb, e, opts)
	_, err := s.Ingest(tb.Context(), d, 0)
	must(tb, err)
	_, err = s.BuildClosure(tb.Context())
	must(tb, err)
	must(tb, bench.FoldLog(tb.Context(), s.db))
	return s
}

func benchIngest(b *testing.B, e bench.Engine, d *Data, opts store.Options) {
	b.ReportAllocs()
	var last IngestResult
	for b.Loop() {
		b.StopTimer()
		s := open(b, e, opts)
		b.StartTimer()
		var err error
		last, err = s.Ingest(b.Context(), d, 0)
		must(b, err)
	}
	b.ReportMetric(last.Rate(), "rows/s")
	b.ReportMetric(ms(last.Batches.P95), "batch-p95-ms")
	b.ReportMetric(ms(last.Indexes), "index-ms")
}

func benchClosure(b *testing.B, s *Store, o *Oracle) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := s.BuildClosure(b.Context())
		must(b, err)
	}
	must(b, s.expect(b.Context(), "count_closure", o.Closure()))
}

func benchScenario(b *testing.B, s *Store, scenario *Scenario, c Closure) {
	ctx := context.WithoutCancel(b.Context()) // some engines pay for one that can be cancelled
	client, err := s.Client(ctx, c)
	must(b, err)
	defer func() { must(b, client.Close()) }()
	a := client.asker(scenario)
	var samples []time.Duration
	must(b, a.ask(ctx, 0))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		must(b, a.ask(ctx, i%len(a.args)))
		samples = append(samples, time.Since(start))
	}
	l := summarise(samples, nil)
	b.ReportMetric(ms(l.P50), "p50-ms")
	b.ReportMetric(ms(l.P95), "p95-ms")
	b.ReportMetric(ms(l.P99), "p99-ms")
	b.ReportMetric(ms(l.Max), "max-ms")
}

// Test checks every answer on one engine: all that there is to ask of the tiny
// data set, with both closures. Checks bounds those of single pairs on engines
// that take a millisecond for one; 0 is all. A listing of each user and each
// resource covers all pairs in any case.
func Test(t *testing.T, e bench.Engine, checks int) {
	if testing.Short() {
		checks = 100
	}
	d, err := Generate(Tiny, benchSeed)
	must(t, err)
	o := NewOracle(d)
	s := openFilled(t, e, d, store.Options{Durability: driver.Durable, Readers: 1})
	for _, c := range Closures {
		t.Run("closure="+string(c), func(t *testing.T) {
			must(t, s.Verify(t.Context(), d, o, c, VerifyConfig{Checks: checks}))
		})
	}
	t.Run("wrong", func(t *testing.T) { testNotices(t, s, d, o) })
}

// testNotices: an answer that is not the oracle's is found, for each closure, by
// Verify and by Measure.
func testNotices(t *testing.T, s *Store, d *Data, o *Oracle) {
	other, err := Generate(Tiny, benchSeed+1)
	must(t, err)
	scenarios, err := Scenarios(d, o)
	must(t, err)
	for _, c := range Closures {
		err := s.Verify(t.Context(), other, NewOracle(other), c, VerifyConfig{Checks: 1})
		if !errors.Is(err, bench.ErrMismatch) {
			t.Errorf("closure %s: answers of other data pass: %v", c, err)
		}
		for i := range scenarios {
			wrong := scenarios[i]
			wrong.Questions = slices.Clone(wrong.Questions)
			for q := range wrong.Questions {
				wrong.Questions[q].Want.Sum++
			}
			_, err := s.Measure(t.Context(), MeasureConfig{Scenario: &wrong, Closure: c, Duration: time.Millisecond})
			if !errors.Is(err, bench.ErrMismatch) {
				t.Errorf("closure %s, %s: a wrong answer passes: %v", c, wrong.Name, err)
			}
		}
	}
}
