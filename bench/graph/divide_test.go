package graph

import (
	"testing"

	"pgregory.net/rapid"
)

// Shares come to the total, none passes its limits, and what cannot be is an error.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 500).Draw(t, "n")
		low, high := rapid.IntRange(0, 5).Draw(t, "low"), rapid.IntRange(5, 500).Draw(t, "high")
		total := rapid.IntRange(0, n*high+1).Draw(t, "total")
		weights := rapid.SliceOfN(rapid.Float64Range(1e-6, 1e6), n, n).Draw(t, "weights")
		list, err := Divide(total, n, low, func(i int) float64 { return weights[i] }, UpTo(high))
		if possible := total >= n*low && total <= n*high; (err == nil) != possible {
			t.Fatalf("%d among %d places of %d to %d: %v", total, n, low, high, err)
		}
		sum := 0
		for _, v := range list {
			if sum += v; v < low || v > high {
				t.Fatalf("%d, want %d to %d", v, low, high)
			}
		}
		if err == nil && sum != total {
			t.Fatalf("%d, want %d", sum, total)
		}
	})
}
