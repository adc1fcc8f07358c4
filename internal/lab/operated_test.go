package lab

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/mix"
)

// TestMeasured: what is measured of these experiments ends well, with the figures that answers and
// tables are made of.
func TestMeasured(t *testing.T) {
	for _, of := range []struct {
		id, only string // of the variants: a part of their names
		n        int
		units    string
	}{
		{"A15", "/bytes=5120/", 8, "p50-ms ent/s B/ent read-p50-ms"},
		{"A16", "layout=compact/profile=typical/durability=durable/cap=10000", 1, "p50-ms max-ms rows/s"},
		{"A17", "page=8192/memory", 4, "load-rows/s late data-MB B/row qps-A"},
		{"C4", "layout=compact", 10, "qps p50-ms"},
		{"I3", "layout=compact", 6, "qps read-p50-ms read-p95-ms rows/s commit-late commit-skipped"},
		{"I5", "rate=10000/qps=1000", 4, "qps rows/s p50-ms read-p50-ms late skipped commit-late commit-skipped"},
		{"J1", "layout=compact", 2, "sync-s rows/s data-MB B/row"},
		{"J2", "layout=compact", 1, "sync-s rows/s data-MB B/row"},
		{"J3", "layout=compact", 1, "backup-s backup-MB restore-s check-s rows/s late skipped"},
		{"J4", "layout=compact", 2, "open-ms first-read-ms first-second-qps warm-qps full-rate-s"},
		{"J5", "layout=compact", 1, "B/row GB/day data-MB after-MB"},
	} {
		t.Run(of.id+" "+of.only, func(t *testing.T) {
			l := testLab(t)
			l.Phase *= 2 // in which some blocks are due
			list, err := l.Plan(find(t, of.id))
			require.NoError(t, err)
			n := 0
			for _, v := range list {
				if !strings.Contains(v.line(), of.only) {
					continue
				}
				n++
				r := l.Measure(t.Context(), &v)
				if memory := v.Keys.Get("memory"); of.id == "C4" && memory != "0.25" {
					if r.Err != nil {
						require.ErrorIs(t, r.Err, ErrSkip, "a machine may have less memory")
						continue
					}
				}
				require.NoError(t, r.Err, v.line())
				for unit := range strings.FieldsSeq(of.units) {
					_, known := r.Metric(unit)
					require.True(t, known, "%s: %s", v.line(), unit)
				}
				if page := v.Keys.Get("page"); page != "" {
					require.Equal(t, page, r.Manifest.Get("setting-page_size"))
				}
			}
			require.Equal(t, of.n, n)
		})
	}
}

// TestSizes: what is measured at each of --sizes has the scale in its name.
func TestSizes(t *testing.T) {
	l := testLab(t)
	l.Sizes, l.Rates, l.Layouts = []float64{1, 5}, []float64{7}, []string{"compact"}
	for id, each := range map[string]int{"C1": 2 * len(mix.Names), "C4": 10, "D1": 1, "I3": 1} {
		list, err := l.Plan(find(t, id))
		require.NoError(t, err)
		scales := map[string]int{}
		for _, v := range list {
			scales[v.Keys.Get("scale")]++
		}
		require.Equal(t, map[string]int{"1": each, "5": each}, scales, id)
	}
}

// TestRenewed: a process whose memory earlier configurations have used gives way to a new one
// before a smaller budget holds, and to begin with it does not.
func TestRenewed(t *testing.T) {
	renewed := errors.New("renewed")
	l := &Lab{Renew: func() error { return renewed }}
	r := &Record{}
	_, err := l.within(1<<20, r)
	require.NoError(t, err)
	l.used = true
	_, err = l.within(1<<20, r)
	require.ErrorIs(t, err, renewed)
	l.Renew = func() error { return errors.ErrUnsupported }
	_, err = l.within(1<<20, r)
	require.NoError(t, err, "where a process cannot become another, it goes on")
}
