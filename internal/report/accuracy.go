package report

import (
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// accuracy says how sure a median is, and how it compares with that of a
// baseline, which may be nil.
func accuracy(g, baseline *runs.Group, m runs.Measure) string {
	values := g.Values(m)
	if len(values) == 0 {
		return ""
	}
	return join(spread(values), compare(values, baseline, g, m))
}

// spread is the interval of the median, or where there are too few runs for one
// the range.
func spread(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	low, high := Number(slices.Min(values)), Number(slices.Max(values))
	if s := stat.Summarize(values); s.Bounded() {
		low, high = Number(s.Low), Number(s.High)
	}
	if low == high {
		return ""
	}
	return low + "–" + high
}

// compare is the ratio to the baseline, with the p-value of there being no
// difference where the runs are enough for one.
func compare(values []float64, baseline, g *runs.Group, m runs.Measure) string {
	if baseline == nil || baseline == g {
		return ""
	}
	old := baseline.Values(m)
	if len(old) == 0 {
		return ""
	}
	c := stat.Compare(old, values)
	if c.Old.Median == 0 {
		return ""
	}
	text := fmt.Sprintf("%s× %s", Number(c.New.Median/c.Old.Median), baseline.Get("engine"))
	switch {
	case c.LeastP >= stat.Alpha:
		return text
	case c.P < stat.Alpha:
		return fmt.Sprintf("%s (p=%.2g)", text, c.P)
	}
	return fmt.Sprintf("%s (p=%.2g, not significant)", text, c.P)
}
