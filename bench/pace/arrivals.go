package pace

import (
	"math/rand/v2"
	"time"
)

// Arrivals is a sequence of scheduled starts. It serves one loop, once.
type Arrivals interface {
	// Next returns the next scheduled start since the loop began. It never goes
	// back.
	Next() time.Duration
}

// Fixed returns arrivals at equal distances, rate of them a second, the first
// one at 0. They do not drift: the n-th is at n/rate. Rate is above 0.
func Fixed(rate float64) Arrivals { return &fixed{rate: mustRate(rate)} }

type fixed struct {
	rate float64
	n    float64
}

func (f *fixed) Next() time.Duration {
	at := f.n / f.rate * float64(time.Second)
	f.n++
	return time.Duration(at)
}

// Poisson returns arrivals that do not know of each other, rate of them a
// second in the mean: the gaps are exponential. The same seed gives the same
// sequence. Rate is above 0.
func Poisson(rate float64, seed uint64) Arrivals {
	return &poisson{rate: mustRate(rate), rand: rand.New(rand.NewPCG(seed, 0x706f6973736f6e))}
}

type poisson struct {
	rate float64
	rand *rand.Rand
	at   float64 // seconds
}

func (p *poisson) Next() time.Duration {
	p.at += p.rand.ExpFloat64() / p.rate
	return time.Duration(p.at * float64(time.Second))
}

func mustRate(rate float64) float64 {
	if !(rate > 0) {
		panic("pace: arrivals need a rate above 0")
	}
	return rate
}
