package pace

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Choice picks one of the numbers 0…n-1, which stand for keys. It is safe for
// concurrent use; all state is in the generator, so a step's Rand makes the
// picks of a workload repeatable.
type Choice interface {
	Pick(r *rand.Rand) uint64
}

// Uniform picks every number alike. N is above 0.
func Uniform(n uint64) Choice { return uniform(mustCount(n)) }

type uniform uint64

func (u uniform) Pick(r *rand.Rand) uint64 { return r.Uint64N(uint64(u)) }

// Theta is the skew that YCSB uses: of a million keys, the first one gets 6 %
// of the picks and the first hundred get a third.
const Theta = 0.99

// Zipf picks number k with a probability proportional to 1/(k+1)^theta, so 0
// most often. For theta below 1, where rand.Zipf cannot go, it is the method of
// Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD
// 1994), as in YCSB. N is above 0 and theta in 0…1, both excluded.
//
// Newest keys first is n-1-k, YCSB's "latest".
func Zipf(n uint64, theta float64) Choice {
	if !(theta > 0 && theta < 1) {
		panic("pace: theta must be between 0 and 1")
	}
	z := &zipf{n: float64(mustCount(n)), alpha: 1 / (1 - theta), second: 1 + math.Pow(0.5, theta)}
	z.zeta = zeta(n, theta)
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - zeta(min(n, 2), theta)/z.zeta)
	return z
}

type zipf struct {
	n           float64
	alpha, zeta float64
	eta         float64
	second      float64 // the first two ranks together, times zeta
}

func (z *zipf) Pick(r *rand.Rand) uint64 {
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

// Scattered spreads the popular numbers of a choice of n over the whole range,
// as YCSB's scrambled Zipfian does: by the FNV-1a hash of the number. A few
// numbers fall on the same key, as there.
func Scattered(c Choice, n uint64) Choice { return &scattered{c, mustCount(n)} }

type scattered struct {
	of Choice
	n  uint64
}

func (s *scattered) Pick(r *rand.Rand) uint64 {
	k, h := s.of.Pick(r), fnv.New64a()
	var text [8]byte
	for i := range text {
		text[i] = byte(k >> (8 * i))
	}
	_, _ = h.Write(text[:]) // a hash never fails
	return h.Sum64() % s.n
}

// Hotspot sends a share (0…1) of the picks to the first hot numbers and the
// rest to the others, alike within each part. Hot is above 0 and below n.
func Hotspot(n, hot uint64, share float64) Choice {
	if hot == 0 || hot >= n {
		panic("pace: a hot spot is a part of the numbers")
	}
	return &hotspot{n: n, hot: hot, share: share}
}

type hotspot struct {
	n, hot uint64
	share  float64
}

func (h *hotspot) Pick(r *rand.Rand) uint64 {
	if r.Float64() < h.share {
		return r.Uint64N(h.hot)
	}
	return h.hot + r.Uint64N(h.n-h.hot)
}

func mustCount(n uint64) uint64 {
	if n == 0 {
		panic("pace: a choice needs a number to pick")
	}
	return n
}
