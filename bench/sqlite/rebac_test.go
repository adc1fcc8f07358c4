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

// TestRebac asks the questions of all scenarios, with both closures. An answer that is not the
// oracle's is found.
func TestRebac(t *testing.T) {
	d, err := rebac.Generate(rebac.Tiny, seed)
	must(t, err)
	db := openAt(t, t.TempDir(), 1)
	_, _, err = rebac.Load(t.Context(), db, d)
	must(t, err)
	scenarios, err := rebac.Scenarios(d, rebac.NewOracle(d))
	must(t, err)
	for _, c := range rebac.Closures {
		for i := range scenarios {
			sc := &scenarios[i]
			out, err := rebac.Ask(t.Context(), db, sc, c, pace.Config{N: int64(len(sc.Questions))})
			must(t, errors.Join(err, out.First))
			wrong := *sc
			wrong.Questions = slices.Clone(sc.Questions)
			wrong.Questions[0].Want.Sum++
			if _, err := rebac.Ask(t.Context(), db, &wrong, c, pace.Config{N: 1}); !errors.Is(err, bench.ErrMismatch) {
				t.Errorf("closure %s, %s: a wrong answer passes: %v", c, wrong.Name, err)
			}
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
