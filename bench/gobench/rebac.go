package gobench

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/coreset"
)

// RunRebac measures the scenarios on one engine, each with both closures and one
// client, an answer an operation; before them ingest and closure, once in each
// operation.
func RunRebac(b *testing.B, s Suite) {
	coreset.Skip(b)
	standard := rebac.Small
	if testing.Short() {
		standard = rebac.Tiny
	}
	size, err := rebac.ParseSize(cmp.Or(s.Flags.rebac, standard.Name))
	must(b, err)
	s.options(b) // or it is skipped
	d, err := rebac.Generate(size, seed)
	must(b, err)
	o := rebac.NewOracle(d)
	scenarios, err := rebac.Scenarios(d, o)
	must(b, err)
	b.Run(s.Name(bench.Dataset{Layout: "rebac", Profile: bench.Profile{Name: size.Name}}), func(b *testing.B) {
		b.Run("op=ingest", func(b *testing.B) { benchIngest(b, s, d) })
		filled := fillRebac(b, s, d)
		b.Run("op=closure", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := filled.BuildClosure(b.Context())
				must(b, err)
			}
			must(b, filled.CheckClosure(b.Context(), o))
		})
		for _, c := range rebac.Closures {
			for i := range scenarios {
				b.Run("op="+scenarios[i].Name+"/closure="+string(c), func(b *testing.B) {
					out, err := filled.Ask(b.Context(), &scenarios[i], c, pace.Config{More: b.Loop})
					must(b, err)
					Report(b)(bench.Result{Latency: out.All()}, out.First)
				})
			}
		}
	})
}

// fillRebac returns a store of a data set that is closed when the test ends.
func fillRebac(tb testing.TB, suite Suite, d *rebac.Data) *rebac.Store {
	tb.Helper()
	db := suite.openAt(tb, tb.TempDir(), 1)
	s, err := rebac.New(db)
	must(tb, err)
	_, err = s.Ingest(tb.Context(), d, 0)
	must(tb, err)
	_, err = s.BuildClosure(tb.Context())
	must(tb, err)
	must(tb, bench.FoldLog(tb.Context(), db))
	return s
}

func benchIngest(b *testing.B, suite Suite, d *rebac.Data) {
	b.ReportAllocs()
	var last rebac.IngestResult
	for b.Loop() {
		b.StopTimer()
		s, err := rebac.New(suite.openAt(b, b.TempDir(), 1))
		must(b, err)
		b.StartTimer()
		last, err = s.Ingest(b.Context(), d, 0)
		must(b, err)
	}
	report(b, []bench.Metric{
		{Value: last.Rate(), Unit: "rows/s"}, result.Milliseconds(last.Batches.P95, "batch-p95-ms"), result.Milliseconds(last.Indexes, "index-ms"),
	})
}

// CheckRebac checks every answer on one engine: all that there is to ask of the tiny
// data set, with both closures. Checks bounds those of single pairs on engines
// that take a millisecond for one; 0 is all. A listing of each user and each
// resource covers all pairs in any case.
func CheckRebac(t *testing.T, suite Suite, checks int) {
	if testing.Short() {
		checks = 100
	}
	d, err := rebac.Generate(rebac.Tiny, seed)
	must(t, err)
	o := rebac.NewOracle(d)
	s := fillRebac(t, suite, d)
	for _, c := range rebac.Closures {
		t.Run("closure="+string(c), func(t *testing.T) {
			must(t, s.Verify(t.Context(), d, o, c, rebac.VerifyConfig{Checks: checks}))
		})
	}
	t.Run("wrong", func(t *testing.T) { checkRebacNotices(t, s, d, o) })
}

// checkRebacNotices: an answer that is not the oracle's is found, for each closure, by
// Verify and by Ask.
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
			_, err := s.Ask(t.Context(), &wrong, c, pace.Config{N: 1})
			if !errors.Is(err, bench.ErrMismatch) {
				t.Errorf("closure %s, %s: a wrong answer passes: %v", c, wrong.Name, err)
			}
		}
	}
}
