package social

import (
	"math"

	"github.com/varvedb/varve/internal/splitmix"
)

// Activity is of a Pareto distribution of index 1 (Lomax's form): that of the user at
// part x of all, the most active first, is as 1/(1+steepness·x). With this steepness a
// fifth has four fifths of it, and the first of very many has 386 times the mean.
const steepness = 3104

// share returns the share of all activity that the most active part x (0…1) has.
func share(x float64) float64 { return math.Log1p(steepness*x) / math.Log1p(steepness) }

// activity returns how active each of n users is, by rank.
func activity(n int) func(i int) float64 {
	return func(i int) float64 { return share(float64(i+1)/float64(n)) - share(float64(i)/float64(n)) }
}

// part is the inverse of share: whose turn it is at a point of all activity.
func part(share float64) float64 { return math.Expm1(share*math.Log1p(steepness)) / steepness }

// permutation is a pseudo-random order of 0…n-1 that needs no memory: a Feistel
// network over the next power of four, repeated until it ends inside.
type permutation struct {
	n, half uint64
	mask    uint64
	keys    [rounds]uint64
}

const rounds = 4

func newPermutation(n int, seed, purpose uint64) permutation {
	p := permutation{n: uint64(n), half: 1}
	for 1<<(2*p.half) < p.n {
		p.half++
	}
	p.mask = 1<<p.half - 1
	for i := range p.keys {
		p.keys[i] = splitmix.Scramble(seed ^ splitmix.Scramble(purpose<<8|uint64(i)))
	}
	return p
}

// at returns where i (0…n-1) is.
func (p *permutation) at(i int) int {
	x := uint64(i)
	for {
		left, right := x>>p.half, x&p.mask
		for _, key := range p.keys {
			left, right = right, left^splitmix.Scramble(right^key)&p.mask
		}
		if x = left<<p.half | right; x < p.n {
			return int(x)
		}
	}
}

// unit returns a number in 0…1 for the ith draw of a purpose.
func unit(seed, purpose uint64, i int) float64 {
	return float64(splitmix.Scramble(seed^splitmix.Scramble(purpose^splitmix.Scramble(uint64(i))))>>11) / (1 << 53)
}
