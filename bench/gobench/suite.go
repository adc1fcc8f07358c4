package gobench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Dataset returns the data set that benchmarks of a layout and a profile begin
// with.
func (s Suite) Dataset(layout string, p bench.Profile) bench.Dataset {
	return bench.Dataset{
		Engine: s.Engine, Layout: layout, Profile: p,
		Gen: bench.GenOptions{Entities: s.Flags.size(), PerBlock: perBlock, Seed: seed},
	}
}

// Name is the part of a benchmark's name that says on what it runs. The order
// of keys is part of the format of results; a new key comes behind them.
func (s Suite) Name(d bench.Dataset) string {
	return "engine=" + s.Engine.Name + "/layout=" + d.Layout + "/profile=" + d.Profile.Name + "/durability=" + s.Flags.durability
}

// Each runs a benchmark on an open copy of the data set of each layout and
// profile: those of the flags, else the given layouts.
func (s Suite) Each(b *testing.B, layouts []string, f func(b *testing.B, r *Run)) {
	profiles, err := s.Flags.chooseProfiles()
	must(b, err)
	for _, layout := range s.Flags.chooseLayouts(layouts...) {
		for _, p := range profiles {
			d := s.Dataset(layout, p)
			b.Run(s.Name(d), func(b *testing.B) { f(b, s.Open(b, d)) })
		}
	}
}

// eachLayout runs a benchmark on a data set in each layout of the flags, else of those
// given.
func (s Suite) eachLayout(b *testing.B, d bench.Dataset, layouts []string, f func(b *testing.B, d bench.Dataset)) {
	d.Engine = s.Engine
	for _, d.Layout = range s.Flags.chooseLayouts(layouts...) {
		b.Run(s.Name(d), func(b *testing.B) { f(b, d) })
	}
}

// Open opens a copy of a data set that is closed when the benchmark ends. The
// options are those of the flags; tune changes them. A benchmark of a
// durability that the engine does not have is skipped.
func (s Suite) Open(b *testing.B, d bench.Dataset, tune ...func(*store.Options)) *Run {
	b.Helper()
	opts := s.options(b)
	for _, f := range tune {
		f(opts)
	}
	cache, err := bench.OpenCache("")
	must(b, err)
	ctx := context.Background() // the benchmark's ends before its clean-up
	cp, err := cache.OpenCopy(ctx, d, opts)
	must(b, err)
	b.Cleanup(func() { must(b, cp.Close()) })
	must(b, s.Flags.writeManifest(ctx, b.Name(), cp, opts))
	return &Run{Copy: cp, Dataset: d}
}

// Run is an open copy of a data set in a benchmark.
type Run struct {
	*bench.Copy
	Dataset bench.Dataset
}

// Report takes what a workload has done: Report(b)(bench.Get(…)).
func Report(b *testing.B) func(bench.Result, error) {
	b.ReportAllocs()
	return func(res bench.Result, err error) {
		b.Helper()
		must(b, err)
		report(b, res.Metrics())
	}
}

func report(b *testing.B, list []bench.Metric) {
	b.Helper()
	for _, m := range list {
		b.ReportMetric(m.Value, m.Unit)
	}
}

// Write is Report for a workload that changes the store, with the engine's sizes.
func (r *Run) Write(b *testing.B) func(bench.Result, error) {
	b.Helper()
	before, err := r.DB.Stats(b.Context())
	must(b, err)
	b.ReportAllocs()
	return func(res bench.Result, err error) {
		b.Helper()
		must(b, err)
		must(b, res.AddSizes(b.Context(), r.DB, r.Entities, before))
		report(b, res.Metrics())
	}
}

// writeManifest appends the manifest of a run to the file of -varve.manifest.
func (f *Flags) writeManifest(ctx context.Context, name string, cp *bench.Copy, opts *store.Options) error {
	if f.manifest == "" {
		return nil
	}
	m, err := bench.NewManifest(ctx, cp, opts)
	if err != nil {
		return err
	}
	m.Name = name
	file, err := os.OpenFile(f.manifest, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(m), file.Close())
}

// driver returns what the linked engine says of itself.
func (s Suite) driver(b *testing.B) driver.Driver {
	b.Helper()
	d, err := s.Engine.Driver()
	must(b, err)
	return d
}

// options returns how the flags say that stores are opened. A benchmark of a durability
// that the engine does not have is skipped.
func (s Suite) options(b *testing.B) *store.Options {
	b.Helper()
	opts, err := s.Flags.options()
	must(b, err)
	if !slices.Contains(s.driver(b).Capabilities.Durabilities, opts.Durability) {
		b.Skipf("engine %s has no durability %s", s.Engine.Name, opts.Durability)
	}
	return opts
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
