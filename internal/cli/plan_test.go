package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/source"
)

// An hour of reorgs with each layout has the time for it, and so has a larger size.
func TestPatience(t *testing.T) {
	of := func(id string, phase time.Duration, sizes ...float64) time.Duration {
		found, err := lab.Find([]string{id})
		require.NoError(t, err)
		return patience(found[0], lab.Options{Scale: 0.05, Phase: phase, Sizes: sizes}, bench.Engine{Name: "sqlite"})
	}
	require.Greater(t, of("D3", time.Hour), 5*time.Hour)
	require.Less(t, of("D3", time.Second), 3*time.Hour)
	require.Greater(t, of("D5", time.Second, 5), 5*of("D5", time.Second))
}

// TestPlan: with less time and disk sizes go first, then repeats, then engines.
func TestPlan(t *testing.T) {
	small, large := source.Amount{Rows: 20_000, PayloadBytes: 2 << 20}, source.Amount{Rows: 20_000_000, PayloadBytes: 4 << 30}
	for _, c := range []struct {
		name           string
		data           source.Amount
		time           time.Duration
		free           uint64
		engines        int
		sizes, repeats int // that are left of 4 and 3
		left           string
	}{
		{"all", small, 4 * time.Hour, 100 << 30, 5, 4, 3, ""},
		{"one engine", small, 20 * time.Minute, 100 << 30, 1, 4, 3, ""},
		{"sizes", small, 4 * time.Minute, 100 << 30, 1, 2, 3, "sizes 5, 10"},
		{"repeats", small, 10 * time.Minute, 100 << 30, 5, 2, 1, "2 of 3 repeats"},
		{"engines", small, 3 * time.Minute, 100 << 30, 2, 2, 1, "libsql, duckdb, postgres; with --time 39m0s"},
		{"the disk", large, 100 * time.Hour, 100 << 30, 1, 1, 3, "of disk nothing is left out"},
		{"nothing fits", small, time.Second, 100 << 30, 1, 1, 1, "layout compact"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &request{layouts: []string{"arkiv", "compact"}, sizes: []float64{1, 2, 5, 10}, repeats: 3, mixes: 1, v1: v1Size, data: c.data, time: c.time, free: c.free}
			for _, name := range engine.Names() {
				w.engines = append(w.engines, bench.Engine{Name: name})
			}
			if c.engines == 1 && c.name != "nothing fits" {
				w.engines = w.engines[:1]
			}
			p := w.fit()
			require.Len(t, p.engines, c.engines, "%+v", p)
			require.Len(t, p.sizes, c.sizes, "%+v", p)
			require.Equal(t, c.repeats, p.repeats)
			require.GreaterOrEqual(t, p.phase, leastPhase)
			require.LessOrEqual(t, p.phase, mostPhase)
			require.Contains(t, strings.Join(p.dropped, ", "), c.left)
			require.Equal(t, c.left == "", len(p.dropped) == 0)
			require.Equal(t, c.name != "nothing fits", p.takes <= c.time)
			require.Len(t, w.sizes, 4, "what was asked for stays")
		})
	}
}

// The base profile is as large as can be loaded in a part of the time, and goes on with its phase.
func TestPlanBase(t *testing.T) {
	w := &request{engines: []bench.Engine{{Name: engine.Names()[0]}}, layouts: []string{"compact"}, sizes: []float64{1}, repeats: 1, mixes: 3, time: 20 * time.Minute, free: 100 << 30}
	base := w.base()
	require.Greater(t, base, 0.01)
	w.time = time.Minute
	require.Less(t, w.base(), base)
	w.data, w.phase = source.Amount{Rows: 1000}, 700*time.Millisecond
	require.Equal(t, w.phase, w.fit().phase)
}
