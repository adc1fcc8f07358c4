package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Estimate is a figure of a sample with its interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`  // of the 95 % interval
	High  float64 `json:"high"` // of the 95 % interval
	N     int     `json:"n"`    // observations
}

// resamples are enough for the ends of a 95 % interval to be steady in their
// second digit.
const resamples = 2000

// Bootstrap returns the interval of any figure of a sample by drawing from the
// sample with replacement, 2000 times (percentile method). The figure is given
// values in ascending order, which it must not keep. ErrTooFew for fewer than 2.
func Bootstrap(seed uint64, values []float64, figure func(sorted []float64) float64) (Estimate, error) {
	s, err := newResampler(seed, values)
	if err != nil {
		return Estimate{}, err
	}
	return interval(figure(s.sorted), len(values), func() float64 { return figure(s.draw()) })
}

// MedianInterval returns the median of a sample with its bootstrap interval.
func MedianInterval(seed uint64, values []float64) (Estimate, error) {
	return QuantileInterval(seed, values, 0.5)
}

// QuantileInterval returns a quantile of a sample, p in 0…1, with its bootstrap
// interval. Far out, where a resample has only the same few observations, the
// interval ends at the largest of them and is too narrow.
func QuantileInterval(seed uint64, values []float64, p float64) (Estimate, error) {
	return Bootstrap(seed, values, func(sorted []float64) float64 { return quantile(sorted, p) })
}

// RatioInterval returns the median of a sample over that of a base, such as new
// over old, with its bootstrap interval; 1 in the interval means that nothing is
// known to differ. ErrConstant when the base's median is 0.
func RatioInterval(seed uint64, values, base []float64) (Estimate, error) {
	above, err := newResampler(seed, values)
	if err != nil {
		return Estimate{}, err
	}
	below, err := newResampler(^seed, base)
	if err != nil {
		return Estimate{}, err
	}
	if quantile(below.sorted, 0.5) == 0 {
		return Estimate{}, fmt.Errorf("ratio of medians: the base's is 0: %w", ErrConstant)
	}
	ratio := quantile(above.sorted, 0.5) / quantile(below.sorted, 0.5)
	return interval(ratio, min(len(values), len(base)), func() float64 {
		return quantile(above.draw(), 0.5) / quantile(below.draw(), 0.5)
	})
}

// interval draws the figure of resamples and returns what lies between the ends
// of the confidence level.
func interval(value float64, n int, draw func() float64) (Estimate, error) {
	drawn := make([]float64, 0, resamples)
	for range resamples {
		if v := draw(); !math.IsNaN(v) {
			drawn = append(drawn, v)
		}
	}
	if len(drawn) == 0 {
		return Estimate{}, fmt.Errorf("bootstrap: no resample has the figure: %w", ErrTooFew)
	}
	slices.Sort(drawn)
	return Estimate{Value: value, Low: quantile(drawn, Alpha/2), High: quantile(drawn, 1-Alpha/2), N: n}, nil
}

// resampler draws samples from a sample. It keeps them in order by counting how
// often each observation is drawn, which sorts in linear time.
type resampler struct {
	sorted []float64
	counts []int32
	drawn  []float64
	random *rand.Rand
}

func newResampler(seed uint64, values []float64) (*resampler, error) {
	if len(values) < 2 {
		return nil, fmt.Errorf("bootstrap: %d values, want at least 2: %w", len(values), ErrTooFew)
	}
	return &resampler{
		sorted: slices.Sorted(slices.Values(values)),
		counts: make([]int32, len(values)),
		drawn:  make([]float64, 0, len(values)),
		random: rand.New(rand.NewPCG(seed, uint64(len(values)))),
	}, nil
}

// draw returns a resample in ascending order, valid until the next one.
func (s *resampler) draw() []float64 {
	clear(s.counts)
	for range s.sorted {
		s.counts[s.random.IntN(len(s.sorted))]++
	}
	s.drawn = s.drawn[:0]
	for i, n := range s.counts {
		for range n {
			s.drawn = append(s.drawn, s.sorted[i])
		}
	}
	return s.drawn
}
