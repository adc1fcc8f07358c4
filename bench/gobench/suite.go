// Package gobench turns the catalogue of internal/lab into benchmarks of go
// test, as far as it can be repeated one operation at a time: -benchtime,
// -benchmem, -count and profiles then mean the same as for any benchmark.
// Experiments that run at a fixed rate, or that have no single operation, are
// left to varve run. The package also checks an engine against the oracles of
// the whole catalogue. A package bench/<engine> runs it on one engine. Programs
// must not import it, because it imports package testing.
package gobench

import (
	"cmp"
	"errors"
	"flag"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/probe"
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
}

// NewSuite returns the benchmarks of an engine and registers its flags with go
// test. A test package calls it during initialisation.
func NewSuite(engine string) Suite {
	return Suite{Engine: bench.Engine{Name: engine}, Flags: RegisterFlags(flag.CommandLine)}
}

// Run measures the experiments of a name: those of the core set, whatever the
// pattern of -bench, or all with -varve.all. With -short it takes only the
// first variant of each.
func (s Suite) Run(b *testing.B, name string) {
	o, err := s.Flags.options()
	must(b, err)
	linked, err := s.Engine.Driver()
	must(b, err)
	if !slices.Contains(linked.Capabilities.Durabilities, o.Durability) {
		b.Skipf("engine %s has no durability %s", s.Engine.Name, o.Durability)
	}
	cache, err := bench.OpenCache("")
	must(b, err)
	l := &lab.Lab{Options: o, Engine: s.Engine, Cache: cache, Log: b.Logf}
	measured := map[string]bool{}
	for _, e := range lab.All() {
		if !s.Flags.all && !e.Core(nil) {
			continue
		}
		list, err := l.Plan(e)
		must(b, err)
		for _, v := range s.chosen(list, name, &e) {
			if line := v.Keys.String(); !measured[line] { // some stand in two experiments
				measured[line] = true
				b.Run(line, func(b *testing.B) { s.measure(b, &v) })
			}
		}
	}
	if len(measured) == 0 {
		b.Skip("nothing of the core set: -varve.all measures all")
	}
}

// chosen returns the variants of a plan that are measured, in the order of
// their names.
func (s Suite) chosen(list []lab.Variant, name string, e *lab.Experiment) []lab.Variant {
	list = slices.DeleteFunc(list, func(v lab.Variant) bool {
		return v.Each == nil || v.Name != name || !s.Flags.all && !e.Core(&v)
	})
	slices.SortFunc(list, func(a, b lab.Variant) int { return cmp.Compare(a.Keys.String(), b.Keys.String()) })
	if testing.Short() && len(list) > 1 {
		list = list[:1]
	}
	return list
}

// measure repeats the operations of a variant.
func (s Suite) measure(b *testing.B, v *lab.Variant) {
	err := v.Each(b.Context(), func(cp *bench.Copy, ops *bench.Operations) error {
		repeat := loop
		if ops.Clients > 1 {
			repeat = parallel
		}
		if err := flush(b, cp, ops); err != nil {
			return err
		}
		meter, err := probe.NewMeter(b.Context(), cp.DB.Engine())
		if err != nil && !errors.Is(err, probe.ErrUnsupported) {
			return err
		}
		if meter != nil {
			defer meter.Close()
		}
		took, err := repeat(b, ops, meter)
		if err == nil && meter != nil {
			err = s.costs(b, cp, ops, meter, took.Count())
		}
		if err == nil && ops.Check != nil {
			err = ops.Check(b.Context(), int64(b.N))
		}
		if err == nil {
			figures(b, ops, took)
		}
		return err
	})
	if errors.Is(err, lab.ErrSkip) {
		b.Skip(err)
	}
	must(b, err)
}

// flush completes work that earlier writes deferred, so that its cost is
// charged to them. Reads defer nothing, and their open snapshots would block a
// checkpoint.
func flush(b *testing.B, cp *bench.Copy, ops *bench.Operations) error {
	if ops.Check == nil {
		return nil
	}
	return cp.Flush(b.Context())
}

// costs adds the resources used by an operation. Bytes read and syncs are
// reported only on request: a freshly copied store is mostly in the page cache,
// and the number of syncs follows from engine and durability.
func (s Suite) costs(b *testing.B, cp *bench.Copy, ops *bench.Operations, meter *probe.Meter, n int64) error {
	err := flush(b, cp, ops)
	if err != nil {
		return err
	}
	cost, err := meter.Cost()
	for _, m := range cost.Each(max(n, 1)) {
		if few := m.Unit == "cpu-ns/op" || m.Unit == "write-B/op"; m.Value > 0 && (few || s.Flags.costs) {
			b.ReportMetric(m.Value, m.Unit)
		}
	}
	return err
}

// loop repeats operations of one client.
func loop(b *testing.B, ops *bench.Operations, meter *probe.Meter) (*latency.Recorder, error) {
	took := latency.NewRecorder()
	prepare := func() error {
		b.StopTimer()
		defer b.StartTimer()
		return ops.Prepare(0)
	}
	for b.Loop() {
		if ops.Prepare != nil {
			if err := meter.Apart(prepare); err != nil {
				return took, err
			}
		}
		start := time.Now()
		if err := ops.Do(b.Context(), 0); err != nil {
			return took, err
		}
		took.Record(time.Since(start))
	}
	return took, nil
}

// parallel repeats operations of several clients at once.
func parallel(b *testing.B, ops *bench.Operations, _ *probe.Meter) (*latency.Recorder, error) {
	recorders, errs := make([]*latency.Recorder, ops.Clients), make([]error, ops.Clients)
	for i := range recorders {
		recorders[i] = latency.NewRecorder()
	}
	// Package testing starts a multiple of GOMAXPROCS goroutines. Surplus
	// goroutines end at once.
	procs := runtime.GOMAXPROCS(0)
	b.SetParallelism((ops.Clients + procs - 1) / procs)
	var started atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(turns *testing.PB) {
		client := int(started.Add(1)) - 1
		if client >= ops.Clients {
			return
		}
		for turns.Next() {
			var err error
			if ops.Prepare != nil {
				err = ops.Prepare(client)
			}
			start := time.Now()
			if err == nil {
				err = ops.Do(b.Context(), client)
			}
			if err != nil {
				errs[client] = err
				b.Fail() // which ends the others, too
				return
			}
			recorders[client].Record(time.Since(start))
		}
	})
	b.StopTimer()
	for _, r := range recorders[1:] {
		recorders[0].Merge(r)
	}
	return recorders[0], errors.Join(errs...)
}

// figures adds the latency quantiles, if there are enough operations for them
// to mean something, and the written rows.
func figures(b *testing.B, ops *bench.Operations, took *latency.Recorder) {
	const needsP50, needsP99 = 10, 100
	for _, q := range []struct {
		unit    string
		percent float64
		needs   int64
	}{{"p50-ns", 50, needsP50}, {"p99-ns", 99, needsP99}} {
		if took.Count() >= q.needs {
			b.ReportMetric(float64(took.Quantile(q.percent)), q.unit)
		}
	}
	if ops.Rows != nil && b.Elapsed() > 0 {
		b.ReportMetric(float64(ops.Rows())/b.Elapsed().Seconds(), "rows/s")
	}
}

// Check runs the experiments of some names as briefly as possible: each with
// one layout, and if the core set has a part of it, only that part. Without
// names it runs the first variant of each experiment. Answers are compared with
// an oracle, also while writes run. If own is given, the user's data replace
// the base profile.
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
		if o.Source != "" && !e.Own {
			continue
		}
		list, err := l.Plan(e)
		must(t, err)
		done := map[string]bool{}
		for _, v := range list {
			id := v.Name + v.Keys.With("layout", "").String()
			wanted := slices.Contains(names, v.Name) && (e.Core(&v) || !s.inCore(v.Name))
			if len(names) == 0 {
				id, wanted = v.Name, true
			}
			if wanted && !done[id] {
				done[id] = true
				t.Run(e.ID+"/"+v.Name+"/"+v.Keys.String(), func(t *testing.T) { s.check(t, l.Measure(t.Context(), &v)) })
			}
		}
	}
}

func (s Suite) check(t *testing.T, r *lab.Record) {
	if errors.Is(r.Err, lab.ErrSkip) {
		t.Skip(r.Err)
	}
	must(t, r.Err)
}

// inCore reports whether the core set has an experiment of this name.
func (s Suite) inCore(name string) bool {
	return slices.ContainsFunc(lab.All(), func(e lab.Experiment) bool {
		if !e.Core(nil) { // to plan some of the others takes seconds
			return false
		}
		list, err := e.Variants(lab.Options{Scale: 1}, s.Engine)
		return err == nil && slices.ContainsFunc(list, func(v lab.Variant) bool { return v.Name == name && e.Core(&v) })
	})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Flags are the benchmarks' flags of go test.
type Flags struct {
	all, costs, machineIsFree bool
	scale                     float64
	durability                string
	layouts                   string
}

// RegisterFlags adds the flags, whose names begin with "varve.", to a flag set.
func RegisterFlags(set *flag.FlagSet) *Flags {
	f := new(Flags)
	set.BoolVar(&f.all, "varve.all", false, "everything that the pattern of -bench matches, and not the core set alone")
	set.BoolVar(&f.costs, "varve.costs", false, "bytes that an operation reads from the disk, and its syncs, too")
	set.BoolVar(&f.machineIsFree, "varve.alone", false, "nothing else runs: TestBusy holds each phase to the bound of published rates")
	set.Float64Var(&f.scale, "varve.scale", 0, "part of the sizes of the user's documents (default 0.0125, which is 10,000 entities, with -short 0.0025)")
	set.StringVar(&f.durability, "varve.durability", string(driver.Durable), "durable, relaxed or unsafe")
	set.StringVar(&f.layouts, "varve.layouts", "", "layouts, separated by commas (default: those that each experiment compares)")
	return f
}

// memory is the budget from which cache sizes are derived. It is not enforced
// here.
const memory = 1 << 30

// options returns the lab's options.
func (f *Flags) options() (o lab.Options, err error) {
	o = lab.Options{Scale: f.scale, Seed: 1, Memory: memory, Sitting: "go-test"}
	if o.Scale == 0 {
		if o.Scale = 0.0125; testing.Short() {
			o.Scale = 0.0025
		}
	}
	if f.layouts != "" {
		o.Layouts = strings.Split(f.layouts, ",")
	}
	o.Durability, err = driver.ParseDurability(f.durability)
	return o, err
}

// All reports whether the whole catalogue is requested, not only the core set.
func (f *Flags) All() bool { return f.all }

// Skip skips a benchmark outside of the core set, unless everything is
// requested.
func (f *Flags) Skip(b *testing.B) {
	b.Helper()
	if !f.all {
		b.Skip("not in the core set: -varve.all measures it")
	}
}
