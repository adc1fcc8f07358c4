package rebac

import (
	"fmt"
	"math"
)

// apportion divides a total by weights into counts that add up to it, each at
// least low and at most its own high. Everybody gets low, and the rest goes by
// weight; what does not fit below a high goes to the others.
func apportion(total int, weights []float64, low int, high func(i int) int) ([]int, error) {
	counts := make([]int, len(weights))
	room := 0
	for i := range counts {
		counts[i] = min(low, high(i))
		total -= counts[i]
		room += high(i) - counts[i]
	}
	if total < 0 || total > room {
		return nil, fmt.Errorf("cannot divide %d more among %d places with room for %d", total, len(weights), room)
	}
	for total > 0 {
		given := share(total, weights, counts, high)
		if total -= given; given == 0 {
			break
		}
	}
	for i := 0; total > 0; i = (i + 1) % len(counts) {
		if counts[i] < high(i) {
			counts[i]++
			total--
		}
	}
	return counts, nil
}

// share hands out a total by the weights of those that have room and returns how
// much it could. Running sums are rounded, not each share, so that little is left
// over.
func share(total int, weights []float64, counts []int, high func(i int) int) (given int) {
	sum := 0.0
	for i, w := range weights {
		if counts[i] < high(i) {
			sum += w
		}
	}
	if sum == 0 {
		return 0
	}
	running, before := 0.0, 0
	for i, w := range weights {
		if counts[i] >= high(i) {
			continue
		}
		running += w
		upto := int(math.Floor(running / sum * float64(total) * (1 + 1e-12)))
		n := min(upto-before, high(i)-counts[i])
		before = upto
		counts[i] += n
		given += n
	}
	return given
}
