package scaler

import "fmt"

// Bar says that Permille of 1,000 values lie in From..To, both included, all
// equally likely.
type Bar struct{ Permille, From, To uint64 }

// Histogram is a distribution of whole numbers. Its bars rise, do not overlap,
// and add up to 1,000.
type Histogram []Bar

// from checks the bars, and that no value is below low.
func (h Histogram) from(low uint64) error {
	if len(h) > 0 && h[0].From < low {
		return fmt.Errorf("values from %d, want at least %d", h[0].From, low)
	}
	var sum uint64
	for i, b := range h {
		if b.To < b.From || i > 0 && b.From <= h[i-1].To {
			return fmt.Errorf("bar %d, %d..%d, does not rise", i, b.From, b.To)
		}
		sum += b.Permille
	}
	if sum != 1000 {
		return fmt.Errorf("bars add up to %d, want 1000", sum)
	}
	return nil
}

func (h Histogram) draw(r *rng) uint64 {
	at := r.below(1000)
	for _, b := range h {
		if at < b.Permille {
			if b.From == b.To {
				return b.From
			}
			return b.From + r.below(b.To-b.From+1)
		}
		at -= b.Permille
	}
	return 0
}

func (h Histogram) high() uint64 { return h[len(h)-1].To }

// CDF returns the probability of a value of at most x.
func (h Histogram) CDF(x uint64) float64 {
	var p float64
	for _, b := range h {
		switch {
		case x >= b.To:
			p += float64(b.Permille)
		case x >= b.From:
			p += float64(b.Permille) * float64(x-b.From+1) / float64(b.To-b.From+1)
		}
	}
	return p / 1000
}

// Choice is one value of a text attribute. Weights are relative.
type Choice struct {
	Value  string
	Weight uint64
}

func totalWeight(choices []Choice) (sum uint64) {
	for _, c := range choices {
		sum += c.Weight
	}
	return sum
}

func choose(r *rng, choices []Choice) string {
	at := r.below(totalWeight(choices))
	for _, c := range choices {
		if at < c.Weight {
			return c.Value
		}
		at -= c.Weight
	}
	return ""
}
