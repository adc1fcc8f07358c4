package social

import "github.com/varvedb/varve/internal/splitmix"

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
