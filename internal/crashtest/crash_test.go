package crashtest

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"

	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/postgres"
	_ "github.com/varvedb/varve/store/sqlite"
)

func TestMain(m *testing.M) {
	if code, asked := WorkerIfAsked(); asked {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// tryTurn runs one turn of a trial and returns the report.
func tryTurn(t *testing.T, trial Trial, c Cell) *Report {
	t.Helper()
	if reason := trial.Skip(c); reason != "" {
		t.Skip(reason)
	}
	c.Dir = t.TempDir()
	r := &Report{}
	require.NoError(t, trial.Run(t.Context(), c, newRand(c.Seed), r))
	return r
}

// TestCrash kills a few workers on every engine and layout that this program links;
// cmd/varve-libsql does so on libSQL. varve torture kills many.
func TestCrash(t *testing.T) {
	for engine, kills := range map[string]int{"sqlite": 12, "duckdb": 3, "postgres": 3} {
		if testing.Short() {
			kills /= 3
		}
		for _, layout := range []string{"arkiv", "compact", EventsLayout} {
			t.Run(engine+"/"+layout, func(t *testing.T) {
				trial := &Crash{Worker: Reexec}
				r := tryTurn(t, trial, Cell{Engine: engine, Layout: layout, Seed: 1, Faults: kills})
				skipWithoutServer(t, r)
				require.Empty(t, r.Violations)
				require.Equal(t, kills, r.Faults(trial, engine, layout))
			})
		}
	}
}

// skipWithoutServer skips where no server can be embedded.
func skipWithoutServer(t *testing.T, r *Report) {
	t.Helper()
	if len(r.Violations) > 0 && strings.Contains(r.Violations[0].Text, driver.ErrUnsupported.Error()) {
		t.Skip(r.Violations[0].Text)
	}
}

// TestCrashLevels: a killed process loses nothing at any level.
func TestCrashLevels(t *testing.T) {
	for _, level := range []driver.Durability{driver.Relaxed, driver.Unsafe} {
		trial := &Crash{Worker: Reexec, Level: level}
		r := tryTurn(t, trial, Cell{Engine: "sqlite", Layout: "compact", Seed: 2, Faults: 4})
		require.Empty(t, r.Violations)
		require.Zero(t, r.Rows[0].Outcomes["steps lost"])
	}
	trial := &Crash{Worker: Reexec, Level: driver.Unsafe}
	require.Equal(t, "crash-unsafe", trial.Name())
	require.NotEmpty(t, trial.Skip(Cell{Engine: "duckdb"}))
}

// TestCrashBites: a worker that acknowledges before it commits is caught.
func TestCrashBites(t *testing.T) {
	for _, layout := range []string{"arkiv", EventsLayout} {
		t.Run(layout, func(t *testing.T) {
			trial := &Crash{Worker: Reexec, EarlyAck: true}
			r := tryTurn(t, trial, Cell{Engine: "sqlite", Layout: layout, Seed: 1, Faults: 200})
			require.Len(t, r.Violations, 1)
			require.Contains(t, r.Violations[0].Text, "lost")
		})
	}
}

// TestTorture: every cell gets its faults, what an engine has not is left out, and a
// cell that is broken rests.
func TestTorture(t *testing.T) {
	fake := &fakeTrial{broken: "compact"}
	r := &Report{}
	require.NoError(t, Torture(t.Context(), Options{
		Trials: []Trial{fake}, Engines: []string{"sqlite", "postgres"}, Layouts: []string{"arkiv", "compact", "simple"},
		Kills: 60, Seed: 7, Dir: t.TempDir(),
	}, r))
	require.Equal(t, 60, r.Faults(fake, "sqlite", "arkiv"))
	require.Equal(t, 60, r.Faults(fake, "postgres", "arkiv"))
	require.Equal(t, []Skip{
		{"fake", "sqlite", "simple", "too simple"}, {"fake", "postgres", "simple", "too simple"},
	}, r.Skipped)
	require.Len(t, r.Violations, 2*enough)
	require.Equal(t, []uint64{7, 8, 9}, []uint64{r.Violations[0].Seed, r.Violations[2].Seed, r.Violations[4].Seed})

	twice := &Report{}
	twice.Merge(r)
	twice.Merge(r)
	require.Equal(t, 120, twice.Faults(fake, "sqlite", "arkiv"))
	require.Len(t, twice.Violations, 4*enough)
	require.Len(t, twice.Skipped, 2)
}

// TestKeep: of a turn that found a violation the files stay, where they are asked for.
func TestKeep(t *testing.T) {
	for _, keep := range []bool{false, true} {
		dir, r := t.TempDir(), &Report{}
		require.NoError(t, Torture(t.Context(), Options{
			Trials: []Trial{&fakeTrial{broken: "compact"}}, Engines: []string{"sqlite"}, Layouts: []string{"arkiv", "compact"},
			Kills: 2, Dir: dir, Keep: keep,
		}, r))
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, r.Print(&text))
		if !keep {
			require.Empty(t, left)
			require.NotContains(t, text.String(), "kept")
			continue
		}
		require.Len(t, left, 1)
		require.Contains(t, text.String(), "kept: "+filepath.Join(dir, left[0].Name()))
	}
}

// fakeTrial counts faults and breaks one layout.
type fakeTrial struct{ broken string }

func (*fakeTrial) Name() string { return "fake" }

func (*fakeTrial) Skip(c Cell) string {
	if c.Layout == "simple" {
		return "too simple"
	}
	return ""
}

func (f *fakeTrial) Run(_ context.Context, c Cell, _ *rand.Rand, r *Report) error {
	for range c.Faults {
		r.Fault(f, c, "nothing")
	}
	if c.Layout == f.broken {
		r.Violate(f, c, "it is %s", c.Layout)
	}
	return nil
}
