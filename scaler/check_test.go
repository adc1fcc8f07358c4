package scaler

import (
	"iter"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

func distributions(t *testing.T, blocks iter.Seq2[entity.Block, error]) *Distributions {
	t.Helper()
	d, err := Collect(blocks)
	require.NoError(t, err)
	return d
}

func stream(p Profile, seed uint64) iter.Seq2[entity.Block, error] {
	return Stream(p, Options{Scale: 0.01, Seed: seed})
}

func TestStreamHasTheProfile(t *testing.T) {
	p := Mendoza()
	for seed := range uint64(3) {
		d := distributions(t, stream(p, seed))
		tests := p.Check(d)
		require.Greater(t, len(tests), 40)
		require.Empty(t, Rejected(tests, 0.01))
		small := 0
		for _, test := range tests {
			require.False(t, math.IsNaN(test.P), test)
			if test.P < 0.5 {
				small++
			}
		}
		require.Greater(t, small, len(tests)/5, "p is spread over 0 to 1, or the tests are blind")
	}
}

// TestCheckFindsDamage changes one thing of the profile at a time.
func TestCheckFindsDamage(t *testing.T) {
	for want, damage := range map[string]func(p *Profile){
		"kinds": func(p *Profile) { p.Kinds[1].Count -= 60; p.Kinds[2].Count += 60 },
		"expires or not": func(p *Profile) {
			p.Kinds[3].Fate.Persistent = 1
		},
		"lifetime":                         func(p *Profile) { p.Kinds[2].Fate.Lifetime = Histogram{{1000, 150, 7000}} },
		"payload bytes of vote":            func(p *Profile) { p.Kinds[1].Payload.Size = Histogram{{1000, 200, 800}} },
		"entities a block":                 func(p *Profile) { p.Batches = Histogram{{700, 1, 2}, {300, 3, 30}} },
		"values of vote/choice":            func(p *Profile) { p.Kinds[1].Texts[2].Values = []Choice{{"yes", 1}, {"no", 1}} },
		"values of workload/vm_type":       func(p *Profile) { p.Kinds[5].Texts[5].Values = []Choice{{"tpu", 1}} },
		"string attributes an entity":      func(p *Profile) { p.Kinds[1].Texts[9].Missing = 0 },
		"numeric attributes an entity":     func(p *Profile) { p.Kinds[3].Numbers[3].Missing = 0 },
		"payload bytes of video-chunk":     func(p *Profile) { p.Kinds[2].Payload.Size = Histogram{{1000, 5000, 20000}} },
		"values of sensor_data/status":     func(p *Profile) { p.Kinds[3].Texts[5].Values = []Choice{{"ok", 900}, {"warning", 100}} },
		"values of video-chunk/resolution": func(p *Profile) { p.Kinds[2].Texts[5].Values[0].Weight = 500 },
	} {
		t.Run(want, func(t *testing.T) {
			p, good := Mendoza(), Mendoza()
			damage(&p)
			d := distributions(t, stream(p, 1))
			var names []string
			for _, test := range Rejected(good.Check(d), 0.001) {
				names = append(names, test.Name)
			}
			require.Contains(t, names, want)
			names = nil
			for _, test := range Rejected(append(Compare(d, distributions(t, stream(good, 2)), nil),
				compareBlocks(d, distributions(t, stream(good, 2)))), 0.001) {
				names = append(names, test.Name)
			}
			require.Contains(t, names, want)
		})
	}
}

// compareBlocks tests whether two streams have as many entities a block, among the
// blocks that create any.
func compareBlocks(got, want *Distributions) Test {
	return homogeneity("entities a block", got.EntitiesPerBlock.Counts, want.EntitiesPerBlock.Counts)
}

func TestCompareScaled(t *testing.T) {
	src := func() iter.Seq2[entity.Block, error] { return stream(Mendoza(), 1) }
	want := distributions(t, src())
	for _, m := range []Method{Hybrid, Duplicate, Temporal} {
		got := distributions(t, Scale(src, ScaleOptions{Method: m, Factor: 3}))
		for _, test := range Compare(got, want, nil) {
			require.Greater(t, test.P, 0.9, "%s: %s", m, test)
		}
		if m == Temporal {
			require.InDelta(t, 1, compareBlocks(got, want).P, 1e-9)
		} else {
			require.Less(t, compareBlocks(got, want).P, 0.001)
		}
	}
	require.Empty(t, Rejected(Compare(want, distributions(t, stream(Mendoza(), 2)), nil), 0.01))
}

func TestDistributionsAreBounded(t *testing.T) {
	d := NewDistributions()
	for i := range uint64(5000) {
		name := "n" + entity.Address{byte(i), byte(i >> 8)}.String()
		d.Add(&entity.Block{Number: i, Ops: []entity.Op{{Kind: entity.Create, BTL: i * i, Content: make([]byte, i*100),
			StringAttributes: map[string]string{"type": name, name: "x", "same": name}}}})
	}
	require.True(t, d.Kinds.Many)
	require.LessOrEqual(t, len(d.Values), maxAttribute)
	require.LessOrEqual(t, len(d.PayloadOf), maxCategories)
	require.Equal(t, uint64(5000), d.Payload.N)
	require.Equal(t, uint64(5000), d.Blocks)
}

func TestHistogram(t *testing.T) {
	h := Histogram{{250, 1, 1}, {750, 5, 8}}
	for x, want := range []float64{0, 0.25, 0.25, 0.25, 0.25, 0.4375, 0.625, 0.8125, 1, 1} {
		require.Equal(t, want, h.CDF(uint64(x)), x)
	}
	r, counts := rng{}, make([]uint64, 10)
	for range 10_000 {
		counts[h.draw(&r)]++
	}
	test := chiSquare("draw", counts, []float64{0, .25, 0, 0, 0, .1875, .1875, .1875, .1875, 0})
	require.Greater(t, test.P, 0.01, test)
	require.Equal(t, 4, test.DF)
}

// TestStatistics compares with values from tables.
func TestStatistics(t *testing.T) {
	die := chiSquare("die", []uint64{5, 8, 9, 8, 10, 20}, []float64{1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6})
	require.InDelta(t, 13.4, die.Statistic, 1e-9)
	require.Equal(t, 5, die.DF)
	require.InDelta(t, 0.0199, die.P, 1e-4)
	require.Equal(t, "die: chi-square = 13.40 (df 5, n 60), p = 0.0199", die.String())

	table := homogeneity("table", []uint64{10, 20, 30}, []uint64{20, 20, 20})
	require.InDelta(t, 16./3, table.Statistic, 1e-9) // 2·(5²/15) + 0 + 2·(5²/25)
	require.Equal(t, 2, table.DF)
	require.InDelta(t, 0.0695, table.P, 1e-4)

	require.InDelta(t, 0.05, kolmogorov(1.3581/1000, 1e6), 1e-4)
	require.InDelta(t, 0.01, kolmogorov(1.6276/1000, 1e6), 1e-4)
	require.Equal(t, 1.0, kolmogorov(0.0001, 10))
	require.Equal(t, 1.0, kolmogorov(0.5, 0))

	require.Zero(t, chiSquare("impossible", []uint64{1, 9}, []float64{0, 1}).P)
	require.Zero(t, homogeneity("one is empty", []uint64{0}, []uint64{1}).P)
	require.Equal(t, 1.0, homogeneity("both are empty", []uint64{0}, []uint64{0}).P)
	a, b := newBins(1, 4), newBins(1, 4)
	require.Equal(t, 1.0, ks2("both are empty", &a, &b).P)
	a.add(1)
	require.Zero(t, ks2("one is empty", &a, &b).P)
	b.add(3)
	require.Equal(t, 1.0, ks2("apart", &a, &b).Statistic)
	require.Contains(t, ks2("apart", &a, &b).String(), "apart: D = 1.00000 (n 1), p = ")
}
