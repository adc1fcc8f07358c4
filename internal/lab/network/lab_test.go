package network_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
	_ "github.com/varvedb/varve/internal/lab/network"
	"github.com/varvedb/varve/store/driver"
	_ "github.com/varvedb/varve/store/sqlite"
)

func testLab(t *testing.T) *lab.Lab {
	t.Helper()
	cache, err := bench.OpenCache(t.TempDir())
	require.NoError(t, err)
	return &lab.Lab{
		Options: lab.Options{Scale: 0.0005, Phase: 50 * time.Millisecond, Seed: 1, Durability: driver.Durable, Memory: 64 << 20, Sitting: "now"},
		Engine:  bench.Engine{Name: "sqlite"}, Cache: cache, Log: t.Logf,
	}
}

func line(v *lab.Variant) string { return v.Name + "/" + v.Keys.String() }

// TestNames: no two lines of an experiment have the same name, and the core set is a part of some.
func TestNames(t *testing.T) {
	core := map[string]int{}
	l := testLab(t)
	for _, e := range lab.All() {
		list, err := l.Plan(e)
		require.NoError(t, err, e.ID)
		require.NotEmpty(t, list, e.ID)
		lines := map[string]bool{}
		for i := range list {
			v := &list[i]
			require.False(t, lines[line(v)], "%s: %s is there twice", e.ID, line(v))
			lines[line(v)] = true
			if e.Core(v) {
				core[v.Name]++
			}
		}
	}
	require.Equal(t, map[string]int{"Commit": 2, "Update": 2, "Get": 2, "ReadMix": 8, "EventAppendConditional": 2}, core)
}

// TestMeasured: the measurements of these experiments end well, with the
// figures that answers and tables need.
func TestMeasured(t *testing.T) {
	for _, of := range []struct {
		id, only string // of the variants: a part of their names
		n        int
		units    string
	}{
		{"A15", "/bytes=5120/", 8, "p50-ms ent/s B/ent read-p50-ms"},
		{"A16", "layout=compact/profile=typical/durability=durable/cap=10000", 1, "p50-ms max-ms rows/s"},
		{"A17", "page=8192/memory", 4, "load-rows/s late data-MB B/row qps-A"},
		{"C4", "layout=compact", 20, "qps p50-ms"},
		{"I3", "layout=compact", 6, "qps read-p50-ms read-p95-ms rows/s commit-late commit-skipped"},
		{"I5", "rate=10000/qps=1000", 6, "qps rows/s p50-ms read-p50-ms late skipped commit-late commit-skipped"},
		{"J1", "layout=compact", 2, "sync-s rows/s data-MB B/row"},
		{"J2", "layout=compact", 1, "sync-s rows/s data-MB B/row"},
		{"J3", "layout=compact", 1, "backup-s backup-MB restore-s check-s rows/s late skipped"},
		{"J4", "layout=compact", 2, "open-ms first-read-ms first-second-qps warm-qps full-rate-s"},
		{"J5", "layout=compact", 1, "B/row GB/day data-MB after-MB"},
	} {
		t.Run(of.id+" "+of.only, func(t *testing.T) {
			l := testLab(t)
			found, err := lab.Find([]string{of.id})
			require.NoError(t, err)
			l.Phase *= 2 // in which some blocks are due
			list, err := l.Plan(found[0])
			require.NoError(t, err)
			n := 0
			for _, v := range list {
				if !strings.Contains(line(&v), of.only) {
					continue
				}
				n++
				r := l.Measure(t.Context(), &v)
				if memory := v.Keys.Get("memory"); of.id == "C4" && memory != "0.25" {
					if r.Err != nil {
						require.ErrorIs(t, r.Err, lab.ErrSkip, "a machine may have less memory")
						continue
					}
				}
				require.NoError(t, r.Err, line(&v))
				for unit := range strings.FieldsSeq(of.units) {
					_, known := r.Metric(unit)
					require.True(t, known, "%s: %s", line(&v), unit)
				}
				if page := v.Keys.Get("page"); page != "" {
					require.Equal(t, page, r.Manifest.Get("setting-page_size"))
				}
			}
			require.Equal(t, of.n, n)
		})
	}
}
