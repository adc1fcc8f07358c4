package pace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func counts(c *Zipf, n uint64, picks int) []float64 {
	r, got := rand.New(rand.NewPCG(1, 2)), make([]float64, n)
	for range picks {
		got[c.Pick(r)]++ // out of range panics
	}
	for i := range got {
		got[i] /= float64(picks)
	}
	return got
}

// The frequencies of the most popular keys are those of the law. Gray's method
// is exact for the first two and approximate for the others.
func TestZipf(t *testing.T) {
	const n = 1000
	for _, theta := range []float64{0.5, 0.8, Theta} {
		got, sum := counts(NewZipf(n, theta), n, 1_000_000), zeta(n, theta)
		for k, within := range map[int]float64{0: 0.02, 1: 0.02, 2: 0.35, 9: 0.15, 99: 0.15} {
			want := math.Pow(float64(k+1), -theta) / sum
			require.InEpsilon(t, want, got[k], within, "theta %v, key %d", theta, k)
		}
		head := 0.0
		for _, share := range got[:100] {
			head += share
		}
		require.InEpsilon(t, zeta(100, theta)/sum, head, 0.02, "theta %v", theta)
	}
}

func TestThetaAsDocumented(t *testing.T) {
	all := zeta(1_000_000, Theta)
	require.InDelta(t, 0.06, 1/all, 0.01)
	require.InDelta(t, 1.0/3, zeta(100, Theta)/all, 0.02)
}

func TestZipfSmall(t *testing.T) {
	for n := range uint64(6) {
		got := counts(NewZipf(n+1, Theta), n+1, 10_000)
		for k, share := range got {
			require.Positive(t, share, "key %d of %d", k, n+1)
		}
	}
}

func TestZeta(t *testing.T) {
	const n = 3_000_000
	exact := 0.0
	for k := n; k > 0; k-- {
		exact += math.Pow(float64(k), -Theta)
	}
	require.InEpsilon(t, exact, zeta(n, Theta), 1e-10)
}

// The random numbers of neighbouring steps have nothing to do with each other,
// so a workload may take one of each.
func TestStepsAreIndependent(t *testing.T) {
	for _, seed := range []uint64{0, 1, 42} {
		step, low, rising := newStep(0, nil), [16]float64{}, 0
		before := 0.0
		const n = 100_000
		for i := range int64(n) {
			step.reset(seed, i)
			v := step.Rand.Float64()
			low[int(v*16)]++
			if v > before {
				rising++
			}
			before = v
		}
		for i, c := range low {
			require.InEpsilon(t, n/16.0, c, 0.07, "part %d", i)
		}
		require.InEpsilon(t, n/2, rising, 0.02)
	}
}

func ExampleZipf() {
	keys := NewZipf(1_000_000, Theta)
	r := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		fmt.Println(keys.Pick(r))
	}
	// Output:
	// 80
	// 290896
	// 94309
	// 87401
	// 625
}
