package result

import "strings"

// Direction tells which values of a unit are good ones.
type Direction int

// Directions.
const (
	Lower   Direction = -1 // times and sizes
	Neutral Direction = 0  // neither: correlations, shares
	Higher  Direction = 1  // rates
)

// String returns "lower", "higher" or "neutral".
func (d Direction) String() string {
	return [...]string{"lower", "neutral", "higher"}[d-Lower]
}

// neutral begin the units of figures that describe and are neither good nor bad.
var neutral = []string{"r-", "partial-", "vif-", "rho-", "beta-", "share-", "slope-", "resident"}

// Better returns the direction of a unit by its name: rates (…/s, qps) are better
// when higher, correlations and shares are neither, everything else is a time, a
// size or a count of things that went wrong, and better when lower.
func Better(unit string) Direction {
	for _, prefix := range neutral {
		if strings.HasPrefix(unit, prefix) {
			return Neutral
		}
	}
	if strings.HasSuffix(unit, "/s") || unit == "qps" || strings.HasSuffix(unit, "-qps") || strings.HasPrefix(unit, "qps-") {
		return Higher
	}
	return Lower
}
