package verdict

import (
	"fmt"
	"math"

	"github.com/varvedb/varve/bench/stat"
)

// trend is a power law through measurements at growing scales: a line between
// the logarithms of scale and value.
type trend struct {
	points   []evidence // with a scale and a value, smallest scale first
	exponent float64
	at       func(scale float64) stat.Estimate // N is 0 when there is no interval
}

// fitTrend fits a line by least squares; false with fewer than two sizes.
func fitTrend(points []evidence) (trend, bool) {
	var t trend
	var x, y []float64
	for _, e := range points {
		if e.failed || e.scale <= 0 || e.value <= 0 {
			continue
		}
		t.points = append(t.points, e)
		x, y = append(x, e.scale), append(y, e.value)
	}
	if len(x) < 2 {
		return t, false
	}
	if law, err := stat.FitPowerLaw(x, y); err == nil {
		t.exponent, t.at = law.Exponent, law.At
		return t, true
	}
	// Two sizes: a line, and nothing that tells how sure it is.
	last := len(x) - 1
	t.exponent = math.Log(y[last]/y[0]) / math.Log(x[last]/x[0])
	t.at = func(scale float64) stat.Estimate {
		return stat.Estimate{Value: y[last] * math.Pow(scale/x[last], t.exponent)}
	}
	return t, true
}

// extrapolate judges a criterion by what the trend gives at a scale.
func (t *trend) extrapolate(c Criterion, scale float64) Criterion {
	last := t.points[len(t.points)-1]
	there := t.at(scale)
	shrinks := t.exponent < 0
	if shrinks {
		// Larger data do not make commits faster: what was seen is noise or
		// warming up, and the largest size is the best guess.
		there.Value = last.value
	}
	c = c.judge(there.Value, last.group)
	c.Extrapolated = true
	c = c.note("extrapolated %s× beyond scale %g, where it was %s %s", number(scale/last.scale), last.scale, number(last.value), c.Unit)
	if shrinks {
		return c.note("no growth over %d sizes", len(t.points))
	}
	text := fmt.Sprintf("grows with scale^%.2f over %d sizes", t.exponent, len(t.points))
	if there.N > 0 {
		text += ", " + interval(there, c.Unit)
		if there.Low < c.Want && there.High > c.Want {
			c.Uncertain = true
			text += ", which includes the limit"
		}
	}
	return c.note("%s", text)
}

// interval writes an interval, unless it is so wide that its ends mean nothing.
func interval(e stat.Estimate, unit string) string {
	if e.High > 1e4*e.Low {
		return "95 % interval wider than a factor of 10,000"
	}
	return fmt.Sprintf("95 %% interval %s–%s %s", number(e.Low), number(e.High), unit)
}
