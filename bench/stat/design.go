package stat

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/combin"
)

// Factorial returns the points of a full factorial experiment: every combination
// of the levels of its factors, as many times as repeats says. The order is
// random and depends on the seed alone. Each repetition is complete before the
// next begins, so that what drifts while the experiment runs, such as a growing
// store, falls on all combinations alike.
func Factorial(seed uint64, repeats int, levels ...[]float64) [][]float64 {
	sizes := make([]int, len(levels))
	for i, factor := range levels {
		sizes[i] = len(factor)
	}
	combinations := combin.Cartesian(sizes)
	random := rand.New(rand.NewPCG(seed, uint64(len(combinations))))
	var points [][]float64
	for range repeats {
		for _, i := range random.Perm(len(combinations)) {
			point := make([]float64, len(levels))
			for factor, level := range combinations[i] {
				point[factor] = levels[factor][level]
			}
			points = append(points, point)
		}
	}
	return points
}
