package gobench

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/arkiv"
	"github.com/varvedb/varve/internal/coreset"
	"github.com/varvedb/varve/store/driver"
)

// Suite is the benchmarks of one engine. A package bench/<engine> makes it and
// runs them:
//
//	var suite = gobench.NewSuite("sqlite")
//
//	func BenchmarkCommit(b *testing.B) { gobench.RunCommit(b, suite) }
//
// Every benchmark verifies what it measures and fails when the store is wrong.
type Suite struct {
	Engine bench.Engine
	Flags  *Flags
}

// NewSuite returns the benchmarks of an engine, told by the command line of go test. A
// test package calls it when it is initialised.
func NewSuite(engine string) Suite {
	return Suite{Engine: bench.Engine{Name: engine}, Flags: RegisterFlags(flag.CommandLine)}
}

// perBlock and seed are those of all benchmarks, fixed so that results compare.
const (
	perBlock = 100
	seed     = 1
)

// compared returns the layouts that a benchmark compares: arkiv and compact, and with
// them, when it is asked for by name, others.
func compared(others ...string) []string {
	layouts := []string{"arkiv", "compact"}
	if testing.Short() || coreset.Only() {
		return layouts
	}
	return append(layouts, others...)
}

// firstInShort returns what is compared; with -short only the first.
func firstInShort[T any](list ...T) []T {
	if testing.Short() {
		return list[:1]
	}
	return list
}

// RunCommit measures one block of 100 new entities an operation, on a store
// that holds entities already.
func RunCommit(b *testing.B, s Suite) {
	s.Each(b, compared("arkiv-ordered", "arkiv-pruned", "simple"), func(b *testing.B, r *Run) {
		r.Commit(b, bench.CommitConfig{Blocks: bench.Blocks(r.Dataset.Profile, r.Dataset.Gen.Next(bench.Endless))})
	})
}

// RunUpdate measures one block that gives 100 entities new attributes and payloads
// an operation, and what their layouts put off.
func RunUpdate(b *testing.B, s Suite) {
	s.Each(b, compared(), func(b *testing.B, r *Run) {
		r.Commit(b, bench.CommitConfig{Blocks: bench.Updates(r.Dataset.Profile, r.Dataset.Gen, seed), Settle: true})
	})
}

// Commit measures commits of blocks, one an operation, after what the data set holds.
func (r *Run) Commit(b *testing.B, cfg bench.CommitConfig) {
	var err error
	cfg.Expect, err = r.Dataset.Expectation(r.Ready)
	must(b, err)
	cfg.Loop = b
	r.Write(b)(bench.Commit(b.Context(), r.Entities, cfg))
}

// RunGet measures one entity read by its key an operation.
func RunGet(b *testing.B, s Suite) {
	s.Each(b, compared("simple"), func(b *testing.B, r *Run) {
		Report(b)(bench.Get(b.Context(), r.Entities, bench.GetConfig{Profile: r.Dataset.Profile, Of: r.Dataset.Gen, Seed: seed, Loop: b}))
	})
}

// RunQuery measures each query of the fixed set, read to its end with
// everything of each entity.
func RunQuery(b *testing.B, s Suite) {
	coreset.Skip(b)
	queries := bench.Queries()
	s.Each(b, firstInShort("arkiv", "arkiv-pruned", "compact"), func(b *testing.B, r *Run) {
		answers, err := bench.Answers(r.Dataset.Profile, r.Dataset.Gen, queries)
		must(b, err)
		for i, q := range queries {
			b.Run("query="+q.Name, func(b *testing.B) {
				Report(b)(bench.Query(b.Context(), r.Entities, bench.QueryConfig{Query: q, Answer: answers[i], Loop: b}))
			})
		}
	})
}

// RunApplyTar measures the 100 real Arkiv blocks, applied to an empty store,
// an operation.
func RunApplyTar(b *testing.B, s Suite) {
	coreset.Skip(b)
	// No profile is generated, so its place in the name says what is applied.
	d := bench.Dataset{Profile: bench.Profile{Name: "arkiv-small"}}
	s.eachLayout(b, d, []string{"arkiv"}, func(b *testing.B, d bench.Dataset) { applyTar(b, s, d) })
}

func applyTar(b *testing.B, s Suite, d bench.Dataset) {
	b.ReportAllocs()
	total := bench.NewResult()
	var r *Run
	for b.Loop() {
		b.StopTimer()
		if r != nil {
			must(b, r.Close())
		}
		r = s.Open(b, d)
		b.StartTimer()
		res, err := arkiv.Apply(b.Context(), r.Entities, arkiv.Blocks(), b)
		must(b, err)
		total.Latency.Merge(res.Latency)
		total.Entities, total.Rows = total.Entities+res.Entities, total.Rows+res.Rows
		b.StartTimer() // it checks with the timer stopped
	}
	must(b, total.AddSizes(b.Context(), r.DB, r.Entities, driver.Stats{}))
	report(b, total.Metrics())
}
