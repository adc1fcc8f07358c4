package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
)

// Side has the measurements of one side and of the reference in one sitting,
// with one unit. Their runs alternate.
type Side struct {
	Host            string
	Runs, Reference []float64
}

// Ratio is a side divided by the reference. Host and day change both by about
// the same factor, so ratios are valid for other hosts, where absolute figures
// are not. The statistical unit is the sitting, because the runs of a sitting
// share its host and hour.
type Ratio struct {
	Sittings, Hosts  int
	Median, Min, Max float64 // over the sittings
	P                float64 // p-value of the permutation test; 1 if it is not known
	Least            float64 // smallest possible P with this number of runs

	runs int  // number of the side's runs in the first sitting
	off  bool // as Figure.Off
}

// Pair returns the ratio of a side to a reference over the sittings that have
// both; nil if there are none, or a ratio cannot be computed.
func Pair(side, reference *Figure) *Ratio {
	if side == nil || reference == nil || side.AtLimit || reference.AtLimit || side.Busy+reference.Busy > 0 {
		return nil
	}
	var sittings []Side
	for _, pair := range Paired(side.Runs, reference.Runs) {
		if slices.Min(pair[0].Values) > 0 && slices.Min(pair[1].Values) > 0 {
			sittings = append(sittings, Side{pair[0].Host, pair[0].Values, pair[1].Values})
		}
	}
	r := NewRatio(sittings)
	if r != nil {
		r.off = side.Off || reference.Off
	}
	return r
}

// NewRatio returns the ratio of a side, whose values are above 0. Sittings
// without runs of both are left out; it is nil when none remains.
func NewRatio(sittings []Side) *Ratio {
	sittings = slices.DeleteFunc(slices.Clone(sittings), func(s Side) bool { return len(s.Runs) == 0 || len(s.Reference) == 0 })
	if len(sittings) == 0 {
		return nil
	}
	var ratios []float64
	var hosts []string
	for _, s := range sittings {
		ratios, hosts = append(ratios, math.Exp(meanDifference(logarithms(s)))), appendNew(hosts, s.Host)
	}
	r := &Ratio{Sittings: len(ratios), Hosts: len(hosts), Median: median(ratios), Min: slices.Min(ratios), Max: slices.Max(ratios), runs: len(sittings[0].Runs)}
	r.P, r.Least = Separated(sittings)
	return r
}

// Alpha is the significance level: the share of comparisons of equal sides that
// may be reported as different. It is a little below one in twenty, because a
// simulation of whole campaigns must stay below that.
const Alpha = 0.04

// Differs reports whether the side differs significantly from the reference.
// With one or two sittings that is only valid for these, on their machine.
func (r *Ratio) Differs() bool { return r.P <= Alpha }

// Enough reports whether there are enough runs for a difference to be
// significant: in one sitting that is four of both.
func (r *Ratio) Enough() bool { return r.Least <= Alpha }

// cell formats a ratio, with "~" if it does not differ significantly from 1,
// and "?" if there are too few runs.
func (r *Ratio) cell() Cell {
	c := Cell{Text: "× " + Number(r.Median), Of: extent(r.Sittings, r.Hosts, r.runs)}
	if r.off {
		c.Text += "†"
	}
	switch {
	case !r.Enough():
		c.Text = "? " + c.Text
	case !r.Differs():
		c.Text = "~ " + c.Text
	}
	if lo, hi := Number(r.Min), Number(r.Max); lo != hi {
		c.Range = lo + "–" + hi
	}
	return c
}

// In describes the ratio of a rate: "26 % fewer rows/s than sqlite compact
// (20–30 %, n=3, 2 hosts)".
func (r *Ratio) In(unit, to string) string {
	c := r.cell() // for the brackets
	switch {
	case Number(r.Median) == "1":
		c.Text = fmt.Sprintf("as many %s as %s", unit, to)
	case r.Median > 1:
		c.Text = fmt.Sprintf("%s times the %s of %s", Number(r.Median), unit, to)
	default:
		c.Text = fmt.Sprintf("%.0f %% fewer %s than %s", 100*(1-r.Median), unit, to)
		if c.Range != "" {
			c.Range = fmt.Sprintf("%.0f–%.0f %%", 100*(1-r.Max), 100*(1-r.Min))
		}
	}
	return c.String()
}

// logarithms returns a side with logarithms of its values, or the side itself
// if a value is not above 0.
func logarithms(s Side) Side {
	if min(slices.Min(s.Runs), slices.Min(s.Reference)) <= 0 {
		return s
	}
	of := func(values []float64) (list []float64) {
		for _, v := range values {
			list = append(list, math.Log(v))
		}
		return list
	}
	return Side{s.Host, of(s.Runs), of(s.Reference)}
}

// meanDifference is the difference between the means of the runs and of the reference.
func meanDifference(s Side) float64 { return stat.Mean(s.Runs, nil) - stat.Mean(s.Reference, nil) }

// Separated is a permutation test stratified by sitting (Good, Permutation,
// Parametric and Bootstrap Tests of Hypotheses, 2005, chapter 7). If side and
// reference are equal, the labels of the runs within a sitting are
// exchangeable, and relabelling the runs gives equally large sums of log
// ratios. A test over sittings alone could not decide with five sittings: for
// equal sides, all five ratios are on the same side in one of 16 campaigns. It
// returns the share of labellings with at least as large a difference, and the
// smallest share that is possible.
func Separated(sittings []Side) (p, least float64) {
	all := 0.0 // logarithm of the number of labellings
	for _, s := range sittings {
		all += combin.LogGeneralizedBinomial(float64(len(s.Runs)+len(s.Reference)), float64(len(s.Runs)))
	}
	const few, many = 1_000, 20_000
	p = permuted(sittings, few)
	if p < 0.1 && all > math.Log(few) { // near the threshold a random choice has to be larger
		p = permuted(sittings, many)
	}
	return p, min(1, 2*math.Exp(-all))
}

// permuted tries all labellings of the runs, or as many random ones as a limit.
func permuted(sittings []Side, limit int) float64 {
	random := rand.New(rand.NewPCG(uint64(len(sittings)), 0x7065726d))
	found, sums := 0.0, []float64{0}
	for _, s := range sittings {
		s = logarithms(s)
		found += meanDifference(s)
		named := s.labellings(limit, random, len(sittings) == 1)
		next := make([]float64, 0, min(len(sums)*len(named), limit))
		if len(sums)*len(named) <= limit {
			for _, sum := range sums {
				for _, d := range named {
					next = append(next, sum+d)
				}
			}
		} else {
			for range limit {
				next = append(next, sums[random.IntN(len(sums))]+named[random.IntN(len(named))])
			}
		}
		sums = next
	}
	as := 0
	for _, sum := range sums {
		if math.Abs(sum) >= math.Abs(found)-1e-12 {
			as++
		}
	}
	return max(float64(as), 1) / float64(len(sums))
}

// labellings returns the difference between side and reference of a sitting for each
// labelling of their runs, or for a limited number of random ones. A single sitting
// has no other ones next to it.
func (s Side) labellings(limit int, random *rand.Rand, single bool) (list []float64) {
	pool, n := slices.Concat(s.Runs, s.Reference), len(s.Runs)
	rest := float64(len(s.Reference))
	total := floats.Sum(pool)
	add := func(sum float64) { list = append(list, sum/float64(n)-(total-sum)/rest) }
	if combin.LogGeneralizedBinomial(float64(len(pool)), float64(n)) > math.Log(float64(limit)) {
		pick := randomPlaces
		if single {
			pick = knownPlaces
		}
		list = make([]float64, 0, limit)
		side := make([]float64, n)
		for places := range slices.Chunk(pick(random, len(pool), n, limit), n) {
			for i, at := range places {
				side[i] = pool[at]
			}
			add(floats.Sum(side))
		}
		return list
	}
	for _, chosen := range combin.Combinations(len(pool), n) {
		sum := 0.0
		for _, i := range chosen {
			sum += pool[i]
		}
		add(sum)
	}
	return list
}

// randomPlaces returns the places in a pool of the n runs that are the side's, for each of
// some random labellings.
func randomPlaces(random *rand.Rand, pool, n, labellings int) (places []uint32) {
	order := make([]uint32, pool)
	for i := range order {
		order[i] = uint32(i)
	}
	for range labellings {
		for i := range n {
			j := i + random.IntN(pool-i)
			order[i], order[j] = order[j], order[i]
		}
		places = append(places, order[:n]...)
	}
	return places
}

// drawn has what randomPlaces has returned for single sittings of few runs, by the
// sizes. These decide alone, because the random source has the same seed each time,
// and bench diff compares hundreds of rows of the same sizes.
var drawn sync.Map

// knownPlaces is randomPlaces with the random source of a single sitting.
func knownPlaces(random *rand.Rand, pool, n, labellings int) []uint32 {
	const fewRuns = 40
	if pool > fewRuns {
		return randomPlaces(random, pool, n, labellings)
	}
	sizes := [3]int{pool, n, labellings}
	places, known := drawn.Load(sizes)
	if !known {
		places, _ = drawn.LoadOrStore(sizes, randomPlaces(random, pool, n, labellings))
	}
	return places.([]uint32)
}
