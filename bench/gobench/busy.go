package gobench

import (
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

// Busy measures how busy the loops of the core set are, and commits at full
// rate. If nothing else runs it requires report.MinBusy; the best of several
// tries counts. While other programs run it only requires that the share is
// known, because they compete with the goroutines that make blocks and check
// answers.
func (s Suite) Busy(t *testing.T) {
	o, err := s.Flags.options()
	must(t, err)
	o.Scale, o.Phase, o.Layouts, o.Rates = 0.001, 150*time.Millisecond, []string{"compact"}, []float64{0}
	cache, err := bench.OpenCache(t.TempDir())
	must(t, err)
	l := &lab.Lab{Options: o, Engine: s.Engine, Cache: cache, Log: t.Logf}
	for _, e := range lab.All() {
		wanted := func(v *lab.Variant) bool { return e.ID == "D1" || e.Core(v) }
		if !wanted(nil) {
			continue
		}
		list, err := l.Plan(e)
		must(t, err)
		for _, v := range list {
			if wanted(&v) {
				t.Run(v.Name+"/"+v.Keys.String(), func(t *testing.T) { s.busy(t, l, &v) })
			}
		}
	}
}

// busyTries is the maximum number of tries for one phase.
const busyTries = 20

func (s Suite) busy(t *testing.T, l *lab.Lab, v *lab.Variant) {
	best := 0.0
	for range busyTries {
		r := l.Measure(t.Context(), v)
		must(t, r.Err)
		part, has := r.Metric("busy")
		if !has {
			t.Fatalf("%s has no part of the wall clock that was operations", v.Name)
		}
		if best = max(best, part); best >= report.MinBusy || !s.Flags.machineIsFree {
			return
		}
	}
	t.Errorf("operations took %.3f of the wall clock, want %v: what else does the loop do?", best, report.MinBusy)
}
