package stat

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// maxShared is the largest number of terms that shares are computed for: there
// are 2^n models of n terms.
const maxShared = 12

// shares returns what each column adds to R², averaged over all orders in which
// columns can be added. Unlike a square of a correlation, it neither counts twice
// what two columns explain together nor gives it to the one that came first.
func shares(columns []Predictor, y []float64) []float64 {
	k := len(columns)
	list := make([]float64, k)
	if k > maxShared {
		return list
	}
	explained := allModels(columns, y)
	for set := range explained {
		size := bits.OnesCount(uint(set))
		if size == k {
			continue
		}
		// The part of all orders in which exactly this set comes before a column.
		weight := 1 / (float64(k) * choose(k-1, size))
		for j := range k {
			if set&(1<<j) == 0 {
				list[j] += weight * (explained[set|1<<j] - explained[set])
			}
		}
	}
	return list
}

// allModels returns R² of the model of each set of columns, which are bits.
func allModels(columns []Predictor, y []float64) []float64 {
	k := len(columns)
	among := mat.NewDense(k, k, nil)
	with := make([]float64, k)
	for i := range k {
		with[i] = stat.Correlation(columns[i].Values, y, nil)
		for j := range k {
			among.Set(i, j, stat.Correlation(columns[i].Values, columns[j].Values, nil))
		}
	}
	explained := make([]float64, 1<<k)
	for set := 1; set < len(explained); set++ {
		explained[set] = partR2(among, with, set)
	}
	return explained
}

// partR2 returns R² of the model of a set of columns, from correlations.
func partR2(among *mat.Dense, with []float64, set int) float64 {
	var of []int
	for j := range with {
		if set&(1<<j) != 0 {
			of = append(of, j)
		}
	}
	a, b := mat.NewDense(len(of), len(of), nil), mat.NewVecDense(len(of), nil)
	for i, from := range of {
		b.SetVec(i, with[from])
		for j, to := range of {
			a.Set(i, j, among.At(from, to))
		}
	}
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		// A warning of mat that digits are lost, with a solution all the same:
		// dependent columns have been refused before.
		if x.Len() != len(of) {
			return 0
		}
	}
	return min(max(mat.Dot(&x, b), 0), 1)
}

// choose returns the number of sets of k out of n.
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return math.Round(c)
}
