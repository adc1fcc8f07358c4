package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"golang.org/x/perf/benchmath"
)

// Likely is how probable it has to be that a doubling is seen.
const Likely = 0.9

const (
	draws    = 200 // a probability of 0.9 is known to 4 %
	mostNeed = 100 // repetitions; who needs more has to look for the cause of the noise
)

// Doubling asks of samples whether their doubling, or halving, would be seen by
// Compare at a level, such as that of FalseDiscovery.
type Doubling struct {
	level float64
	least map[[2]int]int // as leastAbove returns it, by sizes
}

// NewDoubling returns a Doubling for a level.
func NewDoubling(level float64) *Doubling {
	return &Doubling{level: level, least: make(map[[2]int]int)}
}

// Seen returns how probable it is that a doubling is significant and changes the
// median by more than the noise, a part as Change returns it: of samples of n1
// and n2 observations that are drawn from values with replacement. Where the
// median is 0 there is nothing to double, and the sizes alone count.
func (d *Doubling) Seen(values []float64, noise float64, n1, n2 int) float64 {
	least, sorted := d.leastAbove(n1, n2), slices.Sorted(slices.Values(values))
	switch {
	case least > 2*n1*n2:
		return 0
	case median(sorted) <= 0, 2*sorted[0] > (1+noise)*sorted[len(sorted)-1]: // all of them are apart
		return 1
	}
	random := rand.New(rand.NewPCG(uint64(n1), uint64(n2)))
	counts := make([]int, len(sorted))
	a, b := make([]float64, n1), make([]float64, n2)
	seen := 0
	for n := range draws {
		if n == draws/4 && seen == n {
			return 1 // below 0.9 this would be luck of 1 in 200
		}
		if float64(n-seen) > draws*(1-Likely) {
			return float64(seen) / float64(n) // whatever comes, it is not Likely
		}
		draw(a, random, sorted, counts, 1)
		draw(b, random, sorted, counts, 2)
		if above(a, b) >= least && Change(median(a), median(b)) > noise {
			seen++
		}
	}
	return float64(seen) / draws
}

// draw fills a sample with values times a factor, in ascending order: counting
// how often each is drawn sorts them in linear time.
func draw(sample []float64, random *rand.Rand, sorted []float64, counts []int, factor float64) {
	clear(counts)
	for range sample {
		counts[random.IntN(len(counts))]++
	}
	at := 0
	for i, n := range counts {
		for range n {
			sample[at] = factor * sorted[i]
			at++
		}
	}
}

// Need returns how many observations a side would be enough for a Likely sight
// of a doubling, when the noise shrinks with their root; 0 when 100 are not. More see
// more, but for the luck of the draws.
func (d *Doubling) Need(values []float64, noise float64) int {
	n := 2 + sort.Search(mostNeed-1, func(i int) bool {
		n := i + 2
		shrunk := noise * math.Sqrt(min(1, float64(len(values))/float64(n)))
		return d.Seen(values, shrunk, n, n) >= Likely
	})
	if n > mostNeed {
		return 0
	}
	return n
}

// leastAbove returns how much above has to be for the test to be significant;
// more than it can be when nothing is enough.
func (d *Doubling) leastAbove(n1, n2 int) int {
	sizes := [2]int{n1, n2}
	least, ok := d.least[sizes]
	if !ok {
		half := (n1*n2 + 1) / 2
		least = 2 * (half + sort.Search(n1*n2+1-half, func(i int) bool { return pValue(ranked(n1, n2, half+i)) <= d.level }))
		d.least[sizes] = least
	}
	return least
}

// ranked returns samples without equal values and with a number of pairs in
// which the value of the second one is the larger.
func ranked(n1, n2, pairs int) (a, b *benchmath.Sample) {
	x, y := make([]float64, n1), make([]float64, n2)
	for i := range x {
		x[i] = float64(i)
	}
	for i := range y {
		y[i] = float64((pairs+i)/n2) - float64(n2-i)/float64(n2+1)
	}
	return newSample(x), newSample(y)
}

// above counts the pairs of two samples in ascending order in which the value of
// the second one is the larger, twice, and once those with equal ones.
func above(a, b []float64) int {
	pairs, below, to := 0, 0, 0
	for _, v := range b {
		for below < len(a) && a[below] < v {
			below++
		}
		for to < len(a) && a[to] <= v {
			to++
		}
		pairs += below + to
	}
	return pairs
}
