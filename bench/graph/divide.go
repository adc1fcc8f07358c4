package graph

import "fmt"

// Divide divides a total by weights into n counts that add up to it, each at least
// low and at most its own high. Everybody gets low, and the rest goes by weight;
// what does not fit below a high goes to the others. Running sums are rounded, not
// each share, so that nothing is left over.
func Divide(total, n, low int, weight func(i int) float64, high func(i int) int) ([]int, error) {
	counts, weights := make([]int, n), make([]float64, n)
	for i := range counts {
		counts[i], weights[i] = min(low, high(i)), weight(i)
		total -= counts[i]
	}
	for total != 0 {
		sum := 0.0
		for i, w := range weights {
			if counts[i] < high(i) {
				sum += w
			}
		}
		if total < 0 || sum == 0 {
			return nil, fmt.Errorf("cannot divide %d more among %d places", total, n)
		}
		running, before, all := 0.0, 0, total
		for i, w := range weights {
			if room := high(i) - counts[i]; room > 0 {
				running += w
				upto := int(running / sum * float64(all) * (1 + 1e-12))
				given := min(upto-before, room)
				before, counts[i], total = upto, counts[i]+given, total-given
			}
		}
	}
	return counts, nil
}

// UpTo is the same high for all places of Divide.
func UpTo(most int) func(i int) int { return func(int) int { return most } }
