package report

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Side is what one sitting measured of a side and of the reference, in one
// unit: the runs of each, in turns around each other.
type Side struct {
	Host            string
	Runs, Reference []float64 // above 0
}

// Ratio is a side over the reference. Hosts and days change both by the same
// factor, so that the ratio of a sitting carries to other hosts where the
// figures do not. The sitting is the unit: its runs share its host and hour.
type Ratio struct {
	Sittings, Hosts  int
	Median, Min, Max float64 // over the sittings
	P                float64 // how often runs without a difference would be as far apart; 1 if that cannot be said
}

// NewRatio returns the ratio of a side. Sittings without runs of both do not
// count; it is nil when none is left.
func NewRatio(sittings []Side) *Ratio {
	var ratios []float64
	var judged []Side
	hosts := map[string]bool{}
	for _, s := range sittings {
		if len(s.Runs) > 0 && len(s.Reference) > 0 {
			judged = append(judged, s)
			ratios = append(ratios, math.Exp(meanLog(s.Runs)-meanLog(s.Reference)))
			hosts[s.Host] = true
		}
	}
	if len(ratios) == 0 {
		return nil
	}
	slices.Sort(ratios)
	return &Ratio{
		Sittings: len(ratios), Hosts: len(hosts),
		Median: NewFigure(ratios, false).Center, Min: ratios[0], Max: ratios[len(ratios)-1],
		P: separated(judged),
	}
}

// alpha is the part of comparisons of equal sides that may be called
// different: below one in twenty, since a simulation of campaigns has to stay
// under that.
const alpha = 0.04

// Differs reports whether the side is told apart from the reference.
func (r *Ratio) Differs() bool { return r.Sittings >= Judged && r.P <= alpha }

func meanLog(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return sum / float64(len(values))
}

// permutations are the labellings that separated draws.
const permutations = 1_000

// separated is a permutation test stratified by sitting (Good, Permutation,
// Parametric and Bootstrap Tests of Hypotheses, 2005, chapter 7): if side and
// reference are equal, the names of the runs within a sitting mean nothing, and
// the sum of the sittings' log ratios is as far from none as that of other
// namings of the same runs. A test over sittings alone could not say anything
// of five: all five ratios are on one side in one of 16 campaigns of equals.
func separated(sittings []Side) (p float64) {
	random := rand.New(rand.NewPCG(uint64(len(sittings)), 0x7065726d))
	found, as := 0.0, 1 // the naming that was measured is one of them
	var pools [][]float64
	for _, s := range sittings {
		found += meanLog(s.Runs) - meanLog(s.Reference)
		pool := make([]float64, 0, len(s.Runs)+len(s.Reference))
		for _, v := range slices.Concat(s.Runs, s.Reference) {
			pool = append(pool, math.Log(v))
		}
		pools = append(pools, pool)
	}
	for range permutations {
		sum := 0.0
		for i, pool := range pools {
			random.Shuffle(len(pool), func(a, b int) { pool[a], pool[b] = pool[b], pool[a] })
			n := len(sittings[i].Runs)
			sum += stat.Mean(pool[:n], nil) - stat.Mean(pool[n:], nil)
		}
		if math.Abs(sum) >= math.Abs(found)-1e-12 {
			as++
		}
	}
	return float64(as) / (permutations + 1)
}
