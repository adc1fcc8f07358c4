package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRatio(t *testing.T) {
	require.Nil(t, NewRatio(nil))
	require.Nil(t, NewRatio([]Side{{Runs: []float64{1}}}), "without a reference")
	r := NewRatio([]Side{
		{Host: "a", Runs: []float64{10, 10}, Reference: []float64{20, 20}},
		{Host: "b", Runs: []float64{90, 40}, Reference: []float64{120, 30}},
		{Host: "a", Runs: []float64{3}, Reference: []float64{2}},
		{Host: "c", Reference: []float64{2}},
	})
	require.Equal(t, []any{3, 2}, []any{r.Sittings, r.Hosts})
	require.InDeltaSlice(t, []float64{1, 0.5, 1.5}, []float64{r.Median, r.Min, r.Max}, 1e-9)
	require.False(t, r.Differs())
}

// Four runs of both are enough to tell a side apart in one sitting, three are not.
func TestDiffers(t *testing.T) {
	side := func(host string, n int) Side {
		return Side{host, []float64{1, 1.1, 1.2, 1.3}[:n], []float64{2, 2.1, 2.2, 2.3}[:n]}
	}
	for _, tt := range []struct {
		sittings        []Side
		enough, differs bool
	}{
		{[]Side{side("a", 3)}, false, false},
		{[]Side{side("a", 4)}, true, true},
		{[]Side{side("a", 2), side("b", 2)}, false, false},
		{[]Side{side("a", 4), side("a", 4), side("a", 4)}, true, true},
		{[]Side{side("a", 2), side("a", 2), side("b", 2)}, true, true},
		{[]Side{{"a", []float64{1, 2, 3, 4}, []float64{1.1, 2.1, 2.9, 3.9}}}, true, false},
	} {
		r := NewRatio(tt.sittings)
		require.Equal(t, []bool{tt.enough, tt.differs}, []bool{r.Enough(), r.Differs()}, "%+v", tt.sittings)
	}
	p, least := Separated([]Side{{"", []float64{0, 0, 0, 0}, []float64{5, 6, 7, 8}}}) // 0 has no logarithm
	require.InDelta(t, 2./70, p, 1e-9)
	require.InDelta(t, 2./70, least, 1e-9)
	p, _ = Separated([]Side{{"", []float64{3, 3, 3}, []float64{3, 3, 3}}})
	require.InDelta(t, 1, p, 1e-9)
}

// TestRatioOfCampaigns simulates campaigns of five sittings, each on a host of
// its own speed that becomes faster or slower by up to a quarter meanwhile, and
// in it two rounds of reference, side, side, reference.
func TestRatioOfCampaigns(t *testing.T) {
	const campaigns, rounds = 1_000, 2
	random := rand.New(rand.NewPCG(20261129, 1))
	campaign := func(ratio, noise float64) *Ratio {
		var sittings []Side
		for range 5 {
			host, drift := 1+7*random.Float64(), 0.5*random.Float64()-0.25
			var s Side
			run := func(of float64) float64 {
				at := float64(len(s.Runs)+len(s.Reference)) / (4*rounds - 1)
				return of * host * (1 + drift*at) * math.Exp(noise*random.NormFloat64())
			}
			for range rounds {
				s.Reference = append(s.Reference, run(100))
				s.Runs = append(s.Runs, run(100*ratio))
				s.Runs = append(s.Runs, run(100*ratio))
				s.Reference = append(s.Reference, run(100))
			}
			sittings = append(sittings, s)
		}
		return NewRatio(sittings)
	}
	for _, noise := range []float64{0.1, 0.3} {
		wrong, found := 0, 0
		for range campaigns {
			if r := campaign(1, noise); r.Differs() {
				wrong++
			}
			if r := campaign(1.5, noise); r.Differs() && r.Median > 1 {
				found++
			}
		}
		t.Logf("noise %v: equal sides called different in %d, a ratio of 1.5 found in %d of %d campaigns", noise, wrong, found, campaigns)
		require.Less(t, wrong, campaigns/20)
		require.GreaterOrEqual(t, found, campaigns*95/100)
	}
}
