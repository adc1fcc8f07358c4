package runs

import (
	"fmt"
	"math"
	"strings"
)

// Number writes a figure with three significant digits, thousands apart: what a
// single machine's measurement is good for.
func Number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return Thousands(fmt.Sprintf("%.0f", v))
	}
	return fmt.Sprintf("%.3g", v)
}

// Thousands puts commas into a whole number.
func Thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
