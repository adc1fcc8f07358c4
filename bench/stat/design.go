package stat

import (
	"math/rand/v2"
	"slices"
)

// Factorial returns the points of a full factorial experiment: every combination
// of the levels of its factors, as many times as repeats says. The order is
// random and depends on the seed alone. Each repetition is complete before the
// next begins, so that what drifts while the experiment runs, such as a growing
// store, falls on all combinations alike.
func Factorial(seed uint64, repeats int, levels ...[]float64) [][]float64 {
	combinations := [][]float64{nil}
	for _, factor := range levels {
		var longer [][]float64
		for _, point := range combinations {
			for _, level := range factor {
				longer = append(longer, append(point[:len(point):len(point)], level))
			}
		}
		combinations = longer
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(combinations))))
	var points [][]float64
	for range repeats {
		for _, i := range random.Perm(len(combinations)) {
			points = append(points, slices.Clone(combinations[i]))
		}
	}
	return points
}
