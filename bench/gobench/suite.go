package gobench

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/source"
)

// Suite is the benchmarks of one engine. A package bench/<engine> makes it and runs them:
//
//	var suite = gobench.NewSuite("sqlite")
//
//	func BenchmarkCommit(b *testing.B) { suite.Run(b, "Commit") }
type Suite struct {
	Engine bench.Engine
	Flags  *Flags

	runs map[string]int // how often each name was asked for: -count asks again
}

// NewSuite returns the benchmarks of an engine, told by the command line of go test. A
// test package calls it when it is initialised.
func NewSuite(engine string) Suite {
	return Suite{Engine: bench.Engine{Name: engine}, Flags: RegisterFlags(flag.CommandLine), runs: map[string]int{}}
}

// Run measures what the catalogue has under a name: the core set, whatever the pattern of
// -bench, or all of it with -varve.all; with -short, of each experiment the first. Each phase
// verifies what it measures, and fails when the store is wrong.
func (s Suite) Run(b *testing.B, name string) {
	o, err := s.Flags.options()
	must(b, err)
	linked, err := s.Engine.Driver()
	must(b, err)
	if !slices.Contains(linked.Capabilities.Durabilities, o.Durability) {
		b.Skipf("engine %s has no durability %s", s.Engine.Name, o.Durability)
	}
	o.Repeat = s.runs[name]
	s.runs[name]++
	cache, err := bench.OpenCache("")
	must(b, err)
	must(b, s.prepare(b.Context(), &o, cache))
	l := &lab.Lab{Options: o, Engine: s.Engine, Cache: cache, Log: b.Logf}
	measured := false
	for _, e := range lab.All() {
		if !slices.Contains(e.Names, name) || !s.Flags.all && !e.HasCore() || o.Source != "" && !e.Own {
			continue
		}
		list, err := l.Plan(e)
		must(b, err)
		for _, v := range s.chosen(list, name, &e) {
			measured = true
			b.Run(v.Keys.String(), func(b *testing.B) { measure(b, l, &v) })
		}
	}
	if !measured {
		b.Skip("nothing of the core set: -varve.all measures all")
	}
}

// prepare has the lab read a block tar of the source.
func (s Suite) prepare(ctx context.Context, o *lab.Options, cache *bench.Cache) (err error) {
	if s.Flags.source != "" {
		o.Source, err = source.Prepare(ctx, s.Flags.source, cache)
	}
	return err
}

// chosen returns what is measured of a plan, in the order of its names.
func (s Suite) chosen(list []lab.Variant, name string, e *lab.Experiment) []lab.Variant {
	list = slices.DeleteFunc(list, func(v lab.Variant) bool { return v.Name != name || !s.Flags.all && !e.Core(&v) })
	slices.SortFunc(list, func(a, b lab.Variant) int { return cmp.Compare(a.Keys.String(), b.Keys.String()) })
	if testing.Short() && len(list) > 1 {
		list = list[:1]
	}
	return list
}

// Check measures what the catalogue has under some names, as little of it as can be: each with
// one layout, and of what has a part in the core set that alone. Answers are held against an
// oracle, beside writes too.
func (s Suite) Check(t *testing.T, names ...string) {
	o, err := s.Flags.options()
	must(t, err)
	o.Scale, o.Phase = 0.0005, 50*time.Millisecond
	cache, err := bench.OpenCache(t.TempDir())
	must(t, err)
	must(t, s.prepare(t.Context(), &o, cache))
	l := &lab.Lab{Options: o, Engine: s.Engine, Cache: cache, Log: t.Logf}
	for _, e := range lab.All() {
		if !slices.ContainsFunc(e.Names, func(name string) bool { return slices.Contains(names, name) }) || o.Source != "" && !e.Own {
			continue
		}
		list, err := l.Plan(e)
		must(t, err)
		done := map[string]bool{}
		for _, v := range list {
			id := v.Name + v.Keys.With("layout", "").String()
			if slices.Contains(names, v.Name) && (e.Core(&v) || !inCore(v.Name)) && !done[id] {
				done[id] = true
				t.Run(v.Name+"/"+v.Keys.String(), func(t *testing.T) { must(t, l.Measure(t.Context(), &v).Err) })
			}
		}
	}
}

// inCore tells whether the core set has something of a name.
func inCore(name string) bool {
	return slices.ContainsFunc(lab.All(), func(e lab.Experiment) bool { return e.HasCore() && slices.Contains(e.Names, name) })
}

// measure measures a phase, of which the iterations are the operations: its figures are in
// place of those that package testing would take, which knows nothing of what goes on outside
// of the calls.
func measure(b *testing.B, l *lab.Lab, v *lab.Variant) {
	var r *lab.Record
	for b.Loop() {
		if r == nil {
			r = l.Measure(b.Context(), v)
		}
	}
	if errors.Is(r.Err, lab.ErrSkip) {
		b.Skip(r.Err)
	}
	must(b, r.Err)
	b.N = int(max(r.Count, 1)) //nolint:staticcheck // the iterations that are printed are the operations
	for _, m := range r.Figures() {
		b.ReportMetric(m.Value, m.Unit)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
