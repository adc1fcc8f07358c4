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

// TestPart: one figure in percent of another is of the sittings that have both. A
// sitting in which the other was nothing has none.
func TestPart(t *testing.T) {
	of := &Figure{Runs: []Runs{{"1", "a", []float64{5, 15}}, {"2", "a", []float64{5, 5}}, {"3", "a", []float64{5, 5}}}}
	whole := &Figure{Runs: []Runs{{"1", "a", []float64{10, 20}}, {"2", "a", []float64{0, 20}}, {"3", "b", []float64{10, 10}}}}
	part := Part(of, whole)
	require.NotNil(t, part)
	require.Equal(t, []Runs{{"1", "a", []float64{50, 75}}}, part.Runs)
	require.Nil(t, Part(of, &Figure{Runs: whole.Runs[1:]}))
}

// TestPairOfNothing: a sitting in which a side did nothing has no ratio.
func TestPairOfNothing(t *testing.T) {
	worked, idle := &Figure{Runs: []Runs{{"1", "a", []float64{10, 20}}}}, &Figure{Runs: []Runs{{"1", "a", []float64{0, 20}}}}
	require.NotNil(t, Pair(worked, worked))
	require.Nil(t, Pair(idle, worked))
	require.Nil(t, Pair(worked, idle))
}

// TestRatioInWords: a ratio below one is the part that is less, and its range goes
// from the smaller part to the larger one.
func TestRatioInWords(t *testing.T) {
	in := func(of ...float64) string {
		var sittings []Side
		for i, v := range of {
			sittings = append(sittings, Side{[]string{"a", "b"}[i%2], []float64{v, v, v, v}, []float64{100, 100, 100, 100}})
		}
		return NewRatio(sittings).In("rows/s", "sqlite compact")
	}
	require.Equal(t, "26 % fewer rows/s than sqlite compact (20–30 %, n=3, 2 hosts)", in(80, 74, 70))
	require.Equal(t, "2.5 times the rows/s of sqlite compact (2–3, n=3, 2 hosts)", in(200, 250, 300))
	require.Equal(t, "as many rows/s as sqlite compact (one sitting)", in(100))
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
