package pace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
