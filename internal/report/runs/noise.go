package runs

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/stat"
)

// Unmeasured is the noise floor where no pair tells one: three runs of one
// configuration on one machine were up to that factor apart.
const Unmeasured = 2.2

// Floor is the noise by unit: the factor that two measurements of the same are
// apart. Figures that differ by no more are not known to differ.
type Floor map[string]float64

// steady is the number of blocks from which on a median differs less than one block.
const steady = 3

// Noise takes the floor of each experiment from its pairs, as stat.Noise does; one that has
// none is not in it. Where a figure of the experiment is of fewer than three blocks, the
// pairs of each block count by themselves: what a median of several says of the noise is
// too little for one.
func Noise(records []result.Record) map[string]Floor {
	noise := make(map[string]Floor)
	records = slices.DeleteFunc(slices.Clone(records), func(r result.Record) bool { return timedNothing(&r) })
	for _, of := range By(records, func(r result.Record) string { return r.Experiment }) {
		parts := [][]result.Record{of}
		if slices.ContainsFunc(Gather(of), func(g *Group) bool { n := len(g.Good()); return n > 0 && n < steady }) {
			parts = By(of, func(r result.Record) int { return r.Repeat })
		}
		floor := make(Floor)
		for _, part := range parts {
			for unit, change := range stat.Noise(part) {
				floor.raise(unit, 1+change)
			}
		}
		if len(floor) > 0 {
			noise[of[0].Experiment] = floor
		}
	}
	return noise
}

// Largest returns for each unit the largest floor that an experiment has.
func Largest(noise map[string]Floor) Floor {
	all := make(Floor)
	for _, floor := range noise {
		for unit, factor := range floor {
			all.raise(unit, factor)
		}
	}
	return all
}

func (f Floor) raise(unit string, factor float64) { f[unit] = max(f[unit], factor) }

// Of returns the floor of a unit, Unmeasured where no pair has it.
func (f Floor) Of(unit string) float64 { return cmp.Or(f[unit], Unmeasured) }

// Inside tells whether two figures of a unit are no further apart than the floor.
func (f Floor) Inside(unit string, a, b float64) bool {
	return a == b || a > 0 && b > 0 && max(a/b, b/a) <= f.Of(unit)
}
