// Package gobench makes benchmarks of go test of the catalogue of internal/lab, whose entries
// varve run measures too, and holds an engine against their oracles. A package bench/<engine>
// runs it on one engine. No program imports it, because it brings package testing along.
package gobench

import (
	"cmp"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store/driver"
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
	l := &lab.Lab{Options: o, Engine: s.Engine, Cache: cache, Log: b.Logf}
	measured := false
	for _, e := range lab.All() {
		if !slices.Contains(e.Names, name) || !s.Flags.all && !e.Core(nil) {
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
// oracle, beside writes too. Data of one's own, if there are some, are in place of the base profile.
func (s Suite) Check(t *testing.T, own string, names ...string) {
	o, err := s.Flags.options()
	must(t, err)
	o.Scale, o.Phase = 0.0005, 50*time.Millisecond
	cache, err := bench.OpenCache(t.TempDir())
	must(t, err)
	if own != "" {
		o.Layouts = []string{"compact"}
		o.Source, err = source.Prepare(t.Context(), own, cache)
		must(t, err)
	}
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
	return slices.ContainsFunc(lab.All(), func(e lab.Experiment) bool { return e.Core(nil) && slices.Contains(e.Names, name) })
}

// measure measures a phase, of which the iterations are the operations: its figures are in place of those that
// package testing would take, which knows nothing of what goes on outside of the calls.
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

// Flags are what the benchmarks can be told on the command line of go test.
type Flags struct {
	all        bool
	scale      float64
	durability string
	layouts    string
}

// RegisterFlags adds the flags, which begin with "varve.", to a set.
func RegisterFlags(set *flag.FlagSet) *Flags {
	f := new(Flags)
	set.BoolVar(&f.all, "varve.all", false, "everything that the pattern of -bench matches, and not the core set alone")
	set.Float64Var(&f.scale, "varve.scale", 0, "part of the sizes of the user's documents (default 0.0125, which is 10,000 entities, with -short 0.0025)")
	set.StringVar(&f.durability, "varve.durability", string(driver.Durable), "durable, relaxed or unsafe")
	set.StringVar(&f.layouts, "varve.layouts", "", "layouts, separated by commas (default: those that each experiment compares)")
	return f
}

// memory is the budget that caches follow from. Here nothing keeps it.
const memory = 1 << 30

// options returns those of the lab. A phase takes what -benchtime says: of a number of
// operations, as 1x, as little as can be.
func (f *Flags) options() (o lab.Options, err error) {
	o = lab.Options{Scale: f.scale, Phase: 50 * time.Millisecond, Seed: 1, Memory: memory, Sitting: "go-test"}
	if o.Scale == 0 {
		if o.Scale = 0.0125; testing.Short() {
			o.Scale = 0.0025
		}
	}
	if f.layouts != "" {
		o.Layouts = strings.Split(f.layouts, ",")
	}
	if given := flag.Lookup("test.benchtime"); given != nil {
		if phase, err := time.ParseDuration(given.Value.String()); err == nil {
			o.Phase = phase
		}
	}
	o.Durability, err = driver.ParseDurability(f.durability)
	return o, err
}

// Skip skips a benchmark that is not of the core set, unless everything is asked for.
func (f *Flags) Skip(b *testing.B) {
	b.Helper()
	if !f.all {
		b.Skip("not in the core set: -varve.all measures it")
	}
}
