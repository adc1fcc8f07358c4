package scaler

import (
	"maps"
	"slices"
	"strings"
)

// Compare tests whether two streams have the same distributions: kinds, values,
// attributes an entity, payloads, lifetimes. It does not compare counts, nor
// how many entities a block has: copies beside the original change that. A copy is
// not a sample of its own, so for a scaled stream and its source p is near 1 rather
// than uniform. References are the attributes
// that name entities, as in ScaleOptions: their values are left out.
func Compare(got, want *Distributions, references []string) []Test {
	if references == nil {
		references = DefaultReferences()
	}
	x, y := cells(got.Kinds, want.Kinds)
	tests := []Test{homogeneity("kinds", x, y)}
	x, y = cells(got.Forever, want.Forever)
	tests = append(tests,
		homogeneity("expires or not", []uint64{got.Lifetime.N, got.Entities - got.Lifetime.N},
			[]uint64{want.Lifetime.N, want.Entities - want.Lifetime.N}),
		homogeneity("kinds that never expire", x, y),
		ks2("lifetime", &got.Lifetime, &want.Lifetime),
		homogeneity("string attributes an entity", got.Texts.Counts, want.Texts.Counts),
		homogeneity("numeric attributes an entity", got.Numbers.Counts, want.Numbers.Counts),
		ks2("payload bytes", &got.Payload, &want.Payload),
	)
	for _, kind := range slices.Sorted(maps.Keys(want.PayloadOf)) {
		w, g := want.PayloadOf[kind], payloadBins()
		if sizes, ok := got.PayloadOf[kind]; ok {
			g = sizes
		}
		tests = append(tests, ks2("payload bytes of "+kind, &g, &w))
	}
	for _, name := range slices.Sorted(maps.Keys(want.Values)) {
		g, w := got.Values[name], want.Values[name]
		if slices.Contains(references, name[strings.LastIndexByte(name, '/')+1:]) {
			continue
		}
		if g.Many || w.Many || identifies(g, got.Entities) || identifies(w, want.Entities) {
			continue
		}
		x, y := cells(g, w)
		tests = append(tests, homogeneity("values of "+name, x, y))
	}
	return tests
}

// identifies tells that values are names of single entities rather than
// categories: in a small stream they are few enough to be kept.
func identifies(c Categories, entities uint64) bool {
	var n uint64
	for _, count := range c.Counts {
		n += count
	}
	return entities > 0 && len(c.Counts) > 8 && n < 8*uint64(len(c.Counts))
}
