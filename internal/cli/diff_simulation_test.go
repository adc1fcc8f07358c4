package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/internal/report"
)

// simulate returns figures of an engine: benchmarks of one distribution each, the first ones slower.
func simulate(random *rand.Rand, rows, repeats int, noise float64, slower int) *report.Set {
	s := &report.Set{}
	for i := range rows {
		for range repeats {
			v := math.Exp(noise * random.NormFloat64())
			if i < slower {
				v *= 2
			}
			s.Lines = append(s.Lines, &benchfmt.Result{Name: benchfmt.Name(fmt.Sprintf("Commit/case=%d", i)), Iters: 1, Values: []benchfmt.Value{{Value: v, Unit: "ns/op"}}})
		}
	}
	return s
}

// Two equal engines of 20 benchmarks are called different in fewer than 5 % of runs, whatever the
// noise and however often they were measured. With three repetitions the answer is "too few".
func TestBenchDiffOfEquals(t *testing.T) {
	const rows = 20
	for _, noise := range []float64{0.1, 0.3} {
		for _, repeats := range []int{3, 6, 12} {
			runs := map[int]int{3: 1000, 6: 1000, 12: 500}[repeats]
			t.Run(fmt.Sprintf("noise %v, n %d", noise, repeats), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(1, uint64(repeats)))
				c := diffCmd{Threshold: 5, Alpha: 0.05}
				different, few := 0, 0
				for range runs {
					d := c.compare(simulate(random, rows, repeats, noise, 0), simulate(random, rows, repeats, noise, 0))
					if d.count(verdictWorse)+d.count(verdictBetter) > 0 {
						different++
					}
					if d.count(verdictUnknown) == rows {
						few++
					}
				}
				t.Logf("%d of %d are called different", different, runs)
				require.Less(t, different, runs*5/100)
				require.Equal(t, map[bool]int{true: runs, false: 0}[repeats == 3], few)
			})
		}
	}
}

// With six repetitions an engine that takes twice as long is found in 99 % of runs, and so is one
// benchmark of 20 where the noise is 10 %. At 30 % noise that needs some sixteen: no test at this level
// can tell a single doubling from noise in six.
func TestBenchDiffOfADoubling(t *testing.T) {
	const rows, runs = 20, 1000
	for _, tt := range []struct {
		noise           float64
		repeats, slower int
	}{{0.1, 6, rows}, {0.3, 6, rows}, {0.1, 6, 1}, {0.3, 16, 1}} {
		t.Run(fmt.Sprintf("noise %v, n %d, %d of %d", tt.noise, tt.repeats, tt.slower, rows), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(2, uint64(tt.repeats)))
			c := diffCmd{Threshold: 5, Alpha: 0.05}
			found := 0
			for range runs {
				d := c.compare(simulate(random, rows, tt.repeats, tt.noise, 0), simulate(random, rows, tt.repeats, tt.noise, tt.slower))
				if d.count(verdictWorse) > 0 {
					found++
				}
			}
			t.Logf("%d of %d are found", found, runs)
			require.GreaterOrEqual(t, found, runs*99/100)
		})
	}
}
