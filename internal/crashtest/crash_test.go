package crashtest

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/temptest"
	"github.com/varvedb/varve/store/driver"

	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/postgres"
	_ "github.com/varvedb/varve/store/sqlite"
)

func TestMain(m *testing.M) {
	if code, asked := WorkerIfAsked(); asked {
		os.Exit(code)
	}
	// The trials tell lost syncs from the order of writes, and not from a disk's
	// patience.
	os.Exit(temptest.InMemory(m.Run).Run())
}

// tryRound runs one round of a trial and returns its result.
func tryRound(t *testing.T, trial Trial, c Cell) *Row {
	t.Helper()
	if reason := trial.Skip(c); reason != "" {
		t.Skip(reason)
	}
	c.Dir = t.TempDir()
	r := newRow(trial, c)
	require.NoError(t, trial.Run(t.Context(), c, newRand(c.Seed), r))
	return r
}

// TestCrash kills a few workers on every engine and layout that this program links;
// cmd/varve-libsql does so on libSQL. varve torture kills many.
func TestCrash(t *testing.T) {
	for engine, kills := range map[string]int{"sqlite": 12, "duckdb": 3, "postgres": 2} {
		layouts := []string{"compact", EventsLayout}
		if engine == "sqlite" {
			layouts = append(layouts, "arkiv")
		}
		if testing.Short() {
			kills = max(1, kills/3)
		}
		for _, layout := range layouts {
			t.Run(engine+"/"+layout, func(t *testing.T) {
				t.Parallel()
				r := tryRound(t, Crash(driver.Durable), Cell{Engine: engine, Layout: layout, Seed: 1, Faults: kills})
				skipWithoutServer(t, r)
				require.Empty(t, r.Violations)
				require.Equal(t, kills, r.Faults)
			})
		}
	}
}

// skipWithoutServer skips where no server can be embedded.
func skipWithoutServer(t *testing.T, r *Row) {
	t.Helper()
	if len(r.Violations) > 0 && strings.Contains(r.Violations[0].Text, driver.ErrUnsupported.Error()) {
		t.Skip(r.Violations[0].Text)
	}
}

// TestCrashLevels: a killed process loses nothing at any level.
func TestCrashLevels(t *testing.T) {
	t.Parallel()
	for _, level := range []driver.Durability{driver.Relaxed, driver.Unsafe} {
		r := tryRound(t, Crash(level), Cell{Engine: "sqlite", Layout: "compact", Seed: 2, Faults: 4})
		require.Empty(t, r.Violations)
		require.Zero(t, r.Outcomes["steps lost"])
	}
	trial := Crash(driver.Unsafe)
	require.Equal(t, "crash-unsafe", trial.Name)
	require.NotEmpty(t, trial.Skip(Cell{Engine: "duckdb"}))
}

// TestCrashBites: a worker that acknowledges before it commits is caught.
func TestCrashBites(t *testing.T) {
	for _, layout := range []string{"arkiv", EventsLayout} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			r := tryRound(t, crash(driver.Durable, true), Cell{Engine: "sqlite", Layout: layout, Seed: 1, Faults: 200})
			require.Len(t, r.Violations, 1)
			require.Contains(t, r.Violations[0].Text, "lost")
		})
	}
}

// TestTorture: every cell gets its faults, what an engine has not is left out, a
// cell that is broken rests, and its files stay where they are asked for.
func TestTorture(t *testing.T) {
	fake := Trial{
		Name: "fake", Turn: 25,
		Skip: func(c Cell) string { return map[string]string{"simple": "too simple"}[c.Layout] },
		Run: func(_ context.Context, c Cell, _ *rand.Rand, r *Row) error {
			for range c.Faults {
				r.Fault("nothing")
			}
			if c.Layout == "compact" {
				r.Violate("it is %s", c.Layout)
			}
			return nil
		},
	}
	for _, keep := range []bool{false, true} {
		dir := t.TempDir()
		r, err := Torture(t.Context(), Options{
			Trials: []Trial{fake}, Engines: []string{"sqlite", "postgres"}, Layouts: []string{"arkiv", "compact", "events", "simple"},
			Kills: 60, Seed: 7, Dir: dir, Keep: keep,
		})
		require.NoError(t, err)
		rows := map[string]*Row{}
		for _, row := range r.Rows {
			rows[row.Engine+" "+row.Layout] = row
		}
		require.Equal(t, 60, rows["sqlite arkiv"].Faults)
		require.Equal(t, 60, rows["postgres events"].Faults)
		require.Equal(t, "too simple", rows["sqlite simple"].Skipped)
		require.Equal(t, 2*maxViolations, r.Broken())
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, r.Print(&text))
		if !keep {
			require.Empty(t, left)
			require.NotContains(t, text.String(), "kept")
			continue
		}
		require.Len(t, left, 2*maxViolations)
		for i, v := range rows["sqlite compact"].Violations {
			require.Equal(t, uint64(7+i), v.Seed)
			require.DirExists(t, v.Kept)
			require.Contains(t, text.String(), "kept: "+v.Kept)
		}
	}
}
