package social

import "math"

// pareto is a distribution of activity in which a fifth of the users have four
// fifths of it. A true Pareto distribution with that property has no variance,
// and its most active user would have a third of everything, among 5,000 users,
// and more followers than there are users. This one is shifted, so that its head
// is flat: the most active one has about 120 times the mean among 5,000 users and
// 400 times among 50,000.
type pareto struct {
	shift, power float64
	low, span    float64
}

// The share of the activity that the most active part has.
const (
	activePart  = 0.2
	activeShare = 0.8
)

// newPareto returns the distribution among n.
func newPareto(n int) pareto {
	shift := math.Pow(float64(n), -0.75)
	// The share of the most active grows when the power falls.
	low, high := -20.0, 1.0
	for range 100 {
		if middle := (low + high) / 2; paretoOf(shift, middle).share(activePart) > activeShare {
			low = middle
		} else {
			high = middle
		}
	}
	return paretoOf(shift, high)
}

func paretoOf(shift, power float64) pareto {
	low := math.Pow(shift, power)
	return pareto{shift: shift, power: power, low: low, span: math.Pow(1+shift, power) - low}
}

// share returns the share of all activity that the most active part x (0…1) has.
func (p pareto) share(x float64) float64 { return (math.Pow(x+p.shift, p.power) - p.low) / p.span }

// part is the inverse of share: whose turn it is at a point of all activity.
func (p pareto) part(share float64) float64 {
	return min(max(math.Pow(share*p.span+p.low, 1/p.power)-p.shift, 0), 1)
}

// counts divides a total among n by rank, the most active first, none more than
// a limit. What is over goes to the next ones.
func (p pareto) counts(n, total, limit int) []int {
	list := make([]int, n)
	given := 0
	for i := range list {
		until := int(math.Round(p.share(float64(i+1)/float64(n)) * float64(total)))
		list[i] = min(until-given, limit)
		given += list[i]
	}
	for i := 0; given < total && i < n; i++ {
		more := min(limit-list[i], total-given)
		list[i] += more
		given += more
	}
	return list
}
