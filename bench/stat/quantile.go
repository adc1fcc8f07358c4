package stat

import (
	"math"
	"slices"
)

// Median returns the middle of values, NaN for none. It does not change them.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile returns the value below which a part p of values lies, 0…1, with
// linear interpolation between neighbours (definition 7 of Hyndman and Fan, the
// one of R and NumPy); NaN for none. It does not change them.
func Quantile(values []float64, p float64) float64 {
	return quantile(slices.Sorted(slices.Values(values)), p)
}

func quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 || math.IsNaN(p) {
		return math.NaN()
	}
	at := min(max(p, 0), 1) * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	part := at - float64(low)
	if part == 0 {
		return sorted[low]
	}
	return sorted[low] + part*(sorted[low+1]-sorted[low])
}

// GeoMean returns the geometric mean of values, which is the right one for
// ratios and for figures of different size; NaN when there are none or one is
// not positive.
func GeoMean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	var sum float64
	for _, v := range values {
		if v <= 0 {
			return math.NaN()
		}
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
