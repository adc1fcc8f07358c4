package scaler

// Bar says that Permille of 1,000 values lie in From..To, both included, all
// equally likely.
type Bar struct{ Permille, From, To uint64 }

// Histogram is a distribution of whole numbers. Its bars rise, do not overlap,
// and add up to 1,000.
type Histogram []Bar

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
