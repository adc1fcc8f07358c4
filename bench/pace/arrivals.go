package pace

import (
	"math/rand/v2"
	"time"
)

// Arrivals returns the next scheduled start since the loop began, which is never before
// the last one. It serves one loop, once.
type Arrivals func() time.Duration

// Fixed returns arrivals at equal distances, rate of them a second, the first
// one at 0. They do not drift: the n-th is at n/rate. Rate is above 0.
func Fixed(rate float64) Arrivals {
	mustRate(rate)
	n := -1.0
	return func() time.Duration {
		n++
		return time.Duration(n / rate * float64(time.Second))
	}
}

// Poisson returns arrivals that do not know of each other, rate of them a
// second in the mean: the gaps are exponential. The same seed gives the same
// sequence. Rate is above 0.
func Poisson(rate float64, seed uint64) Arrivals {
	mustRate(rate)
	random := rand.New(rand.NewPCG(seed, 0x706f6973736f6e))
	at := 0.0 // seconds
	return func() time.Duration {
		at += random.ExpFloat64() / rate
		return time.Duration(at * float64(time.Second))
	}
}

func mustRate(rate float64) {
	if !(rate > 0) {
		panic("pace: arrivals need a rate above 0")
	}
}
