package sqlite_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/rebac"
)

// seed is that of the data of these tests.
const seed = 1

// TestRebac checks every answer: all that there is to ask of the tiny data set, with both
// closures.
func TestRebac(t *testing.T) {
	checks := 0 // all
	if testing.Short() {
		checks = 100
	}
	d, err := rebac.Generate(rebac.Tiny, seed)
	must(t, err)
	o := rebac.NewOracle(d)
	s := fillRebac(t, d)
	for _, c := range rebac.Closures {
		t.Run("closure="+string(c), func(t *testing.T) {
			must(t, s.Verify(t.Context(), d, o, c, checks, 0))
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
		err := s.Verify(t.Context(), other, rebac.NewOracle(other), c, 1, 0)
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

// fillRebac returns a store of a data set that is closed when the test ends.
func fillRebac(tb testing.TB, d *rebac.Data) *rebac.Store {
	tb.Helper()
	db := openAt(tb, tb.TempDir(), 1)
	s, err := rebac.New(db)
	must(tb, err)
	_, err = s.Ingest(tb.Context(), d, 0)
	must(tb, err)
	_, err = s.BuildClosure(tb.Context())
	must(tb, err)
	must(tb, bench.FoldLog(tb.Context(), db))
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
