package social

import "math"

// Activity is of a Pareto distribution of index 1 (Lomax's form): that of the user at
// part x of all, the most active first, is as 1/(1+steepness·x). With this steepness a
// fifth has four fifths of it, and the first of very many has 386 times the mean.
const steepness = 3104

// share returns the share of all activity that the most active part x (0…1) has.
func share(x float64) float64 { return math.Log1p(steepness*x) / math.Log1p(steepness) }

// part is the inverse of share: whose turn it is at a point of all activity.
func part(share float64) float64 { return math.Expm1(share*math.Log1p(steepness)) / steepness }

// counts divides a total among n by rank, the most active first, none more than
// a limit. What is over goes to the next ones.
func counts(n, total, limit int) []int {
	list := make([]int, n)
	given := 0
	for i := range list {
		until := int(math.Round(share(float64(i+1)/float64(n)) * float64(total)))
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
