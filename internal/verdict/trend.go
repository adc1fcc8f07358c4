package verdict

import (
	"slices"

	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
)

// enoughSizes are those from which a line has an interval that means anything.
const enoughSizes = 4

// extrapolate judges a criterion by a power law through what was measured at
// smaller scales under one load. It never gives less than the largest of these:
// larger data make nothing faster, what looks so is noise.
func (c Criterion) extrapolate(points []evidence) Criterion {
	var x, y, loads []float64
	for _, e := range points {
		if !e.failed && e.doubt == "" && e.scale > 0 && e.Value > 0 {
			x, y, loads = append(x, e.scale), append(y, e.Value), append(loads, delivered(e.group).writes)
		}
	}
	last := points[len(points)-1]
	if len(x) < enoughSizes {
		return c.judge(last).note("%d sizes that can be judged, a trend needs %d", len(x), enoughSizes)
	}
	if low, high := slices.Min(loads), slices.Max(loads); low < nearly*high {
		return c.judge(last).note("no trend: the loads at its sizes were %s to %s rows/s", runs.Number(low), runs.Number(high))
	}
	law, err := stat.FitPowerLaw(x, y)
	if err != nil {
		return c.judge(last).note("no trend: %s", err)
	}
	there, floor := law.At(c.At), slices.Max(y)
	there.Value, there.Low, there.High = max(there.Value, floor), max(there.Low, floor), max(there.High, floor)
	c = c.from(last).side(there)
	c.Extrapolated = true
	return c.note("extrapolated %s× beyond scale %g, grows with scale^%.2f over %d sizes, %s",
		runs.Number(c.At/x[len(x)-1]), x[len(x)-1], law.Exponent, len(x), interval(there, c.Unit))
}
