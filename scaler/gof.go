package scaler

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Test is the result of a test of goodness of fit.
type Test struct {
	Name      string // what was compared
	Method    string // "chi-square" or "kolmogorov-smirnov"
	Statistic float64
	DF        int     // degrees of freedom of a chi-square test
	N         uint64  // size of the sample; of the smaller one of two
	P         float64 // probability of a statistic at least as large by chance
}

// String returns one line for a report.
func (t Test) String() string {
	if t.Method == chiSquareName {
		return fmt.Sprintf("%s: chi-square = %.2f (df %d, n %d), p = %.3g", t.Name, t.Statistic, t.DF, t.N, t.P)
	}
	return fmt.Sprintf("%s: D = %.5f (n %d), p = %.3g", t.Name, t.Statistic, t.N, t.P)
}

const (
	chiSquareName = "chi-square"
	ksName        = "kolmogorov-smirnov"
)

// Rejected returns the tests that fail at a level, such as 0.001, after
// Bonferroni's correction: when the distributions are the same, it returns any
// at all with at most that probability, however many tests there are.
func Rejected(tests []Test, level float64) []Test {
	var failed []Test
	for _, t := range tests {
		if t.P < level/float64(len(tests)) {
			failed = append(failed, t)
		}
	}
	slices.SortStableFunc(failed, func(a, b Test) int { return cmp.Compare(a.P, b.P) })
	return failed
}

// minExpected is what a cell of a chi-square test must expect for its statistic
// to have the distribution that gives p. Smaller cells are put together with
// the next.
const minExpected = 5

// chiSquare compares counts with probabilities, which add up to 1. A count
// where nothing is expected is impossible: p is 0.
func chiSquare(name string, counts []uint64, probabilities []float64) Test {
	t := Test{Name: name, Method: chiSquareName}
	for i, c := range counts {
		t.N += c
		if probabilities[i] == 0 && c > 0 {
			t.Statistic = math.Inf(1)
		}
	}
	if math.IsInf(t.Statistic, 1) {
		return t
	}
	var pooled [][2]float64 // counted and expected
	var open [2]float64
	for i, c := range counts {
		open[0] += float64(c)
		open[1] += probabilities[i] * float64(t.N)
		if open[1] >= minExpected {
			pooled, open = append(pooled, open), [2]float64{}
		}
	}
	pooled = closed(pooled, open)
	for _, c := range pooled {
		t.Statistic += (c[0] - c[1]) * (c[0] - c[1]) / c[1]
	}
	return t.chiSquare(len(pooled))
}

// homogeneity compares two samples by their counts in the same cells.
func homogeneity(name string, a, b []uint64) Test {
	var na, nb float64
	for i := range a {
		na += float64(a[i])
		nb += float64(b[i])
	}
	t := Test{Name: name, Method: chiSquareName, N: uint64(min(na, nb)), P: 1}
	if na == 0 || nb == 0 {
		if na != nb {
			t.Statistic, t.P = math.Inf(1), 0
		}
		return t
	}
	var pooled [][2]float64 // counted in a and in b
	var open [2]float64
	for i := range a {
		open[0] += float64(a[i])
		open[1] += float64(b[i])
		if (open[0]+open[1])*min(na, nb)/(na+nb) >= minExpected {
			pooled, open = append(pooled, open), [2]float64{}
		}
	}
	pooled = closed(pooled, open)
	for _, c := range pooled {
		expected := (c[0] + c[1]) * na / (na + nb)
		// What one sample has too much, the other lacks.
		off := (c[0] - expected) * (c[0] - expected)
		t.Statistic += off/expected + off/(c[0]+c[1]-expected)
	}
	return t.chiSquare(len(pooled))
}

// closed puts a last cell that is too small with the one before it.
func closed(cells [][2]float64, open [2]float64) [][2]float64 {
	if len(cells) == 0 {
		return nil
	}
	last := &cells[len(cells)-1]
	last[0] += open[0]
	last[1] += open[1]
	return cells
}

// chiSquare fills in degrees of freedom and p. A single cell says nothing.
func (t Test) chiSquare(cells int) Test {
	t.DF = max(cells-1, 0)
	t.P = 1
	if t.DF > 0 {
		t.P = distuv.ChiSquared{K: float64(t.DF)}.Survival(t.Statistic)
	}
	return t
}

// ks compares binned numbers with a distribution, at the ends of the bins. That
// can only make the statistic smaller than without bins.
func ks(name string, b *Bins, cdf func(x uint64) float64) Test {
	t := Test{Name: name, Method: ksName, N: b.N}
	var sum uint64
	for i, c := range b.Counts[:len(b.Counts)-1] {
		sum += c
		if b.N > 0 {
			d := math.Abs(float64(sum)/float64(b.N) - cdf(uint64(i+1)*b.Width-1))
			t.Statistic = max(t.Statistic, d)
		}
	}
	t.P = kolmogorov(t.Statistic, float64(b.N))
	return t
}

// ks2 compares two samples in the same bins.
func ks2(name string, a, b *Bins) Test {
	t := Test{Name: name, Method: ksName, N: min(a.N, b.N)}
	if a.N == 0 || b.N == 0 {
		t.P = 1
		if a.N != b.N {
			t.Statistic, t.P = 1, 0
		}
		return t
	}
	var sa, sb uint64
	for i := range a.Counts {
		sa += a.Counts[i]
		sb += b.Counts[i]
		t.Statistic = max(t.Statistic, math.Abs(float64(sa)/float64(a.N)-float64(sb)/float64(b.N)))
	}
	t.P = kolmogorov(t.Statistic, float64(a.N)*float64(b.N)/float64(a.N+b.N))
	return t
}

// kolmogorov returns the probability of a distance of at least d in a sample
// of n: the limit distribution with Stephens' correction for small samples,
// and an upper bound for discrete numbers.
func kolmogorov(d, n float64) float64 {
	lambda := (math.Sqrt(n) + 0.12 + 0.11/math.Sqrt(n)) * d
	if n == 0 || lambda < 0.2 {
		return 1 // the series converges slowly, to 1
	}
	var p float64
	sign := 2.0
	for k := 1.0; k <= 100; k++ {
		term := math.Exp(-2 * k * k * lambda * lambda)
		p += sign * term
		if term < 1e-16 {
			break
		}
		sign = -sign
	}
	return min(max(p, 0), 1)
}

// cells returns the counts of two categories in the same order.
func cells(a, b Categories) (x, y []uint64) {
	names := map[string]bool{}
	for name := range a.Counts {
		names[name] = true
	}
	for name := range b.Counts {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x = append(x, a.Counts[name])
		y = append(y, b.Counts[name])
	}
	return x, y
}
