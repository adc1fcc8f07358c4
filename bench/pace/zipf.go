package pace

import (
	"math"
	"math/rand/v2"
)

// Theta is the skew that YCSB uses: of a million keys, the first one gets 6 %
// of the picks and the first hundred get a third.
const Theta = 0.99

// Zipf picks numbers 0…n-1, which stand for keys: k with a probability proportional
// to 1/(k+1)^theta, so 0 most often. For theta below 1, where rand.Zipf cannot go, it
// is the method of Gray et al., "Quickly Generating Billion-Record Synthetic
// Databases" (SIGMOD 1994), as in YCSB. It is safe for concurrent use.
type Zipf struct {
	n           float64
	alpha, zeta float64
	eta         float64
	second      float64 // the first two ranks together, times zeta
}

// NewZipf returns the law for n above 0 and theta in 0…1, both excluded.
func NewZipf(n uint64, theta float64) *Zipf {
	if n == 0 || !(theta > 0 && theta < 1) {
		panic("pace: a choice needs a number to pick, and theta must be between 0 and 1")
	}
	z := &Zipf{n: float64(n), alpha: 1 / (1 - theta), second: 1 + math.Pow(0.5, theta)}
	z.zeta = zeta(n, theta)
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - zeta(min(n, 2), theta)/z.zeta)
	return z
}

// Pick draws a number. All state is in r, so a step's Rand makes the picks of a
// workload repeatable.
func (z *Zipf) Pick(r *rand.Rand) uint64 {
	u := r.Float64()
	switch uz := u * z.zeta; {
	case uz < 1 || z.n < 2:
		return 0
	case uz < z.second || z.n < 3:
		return 1
	}
	return uint64(min(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha), z.n-1))
}

// zeta is the sum of 1/k^theta for k in 1…n. Beyond a million terms the rest is
// its integral with the first correction of Euler and Maclaurin, which is off
// by less than 1e-12 of the sum.
func zeta(n uint64, theta float64) float64 {
	const exact = 1_000_000
	term := func(k float64) float64 { return math.Pow(k, -theta) }
	sum := 0.0
	for k := range min(n, exact) {
		sum += term(float64(k + 1))
	}
	if n > exact {
		a, b := float64(exact), float64(n)
		integral := (math.Pow(b, 1-theta) - math.Pow(a, 1-theta)) / (1 - theta)
		sum += integral + (term(b)-term(a))/2
	}
	return sum
}
