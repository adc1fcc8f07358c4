package verdict

import (
	"slices"

	"github.com/varvedb/varve/internal/report/runs"
)

// blockTime is in ms: a commit that takes longer misses its block.
const blockTime = 2000.0

// ceilingName is the rate of reads of a run that searched for the highest.
const ceilingName = "ceiling"

// combined are commits beside each rate of reads, and the ceiling, at the
// largest scale measured.
func (p *pair) combined() []Criterion {
	var criteria []Criterion
	groups := largestOf(runs.Of(p.groups, "D4"))
	for _, g := range groups {
		if g.Get("qps") == ceilingName {
			continue
		}
		name := "commit p99 where " + asked(g).String() + " were asked"
		c := p.measure(below(PartCombined, name, blockTime, "ms").at(1), "D4")
		criteria = append(criteria, p.answer(c, "D4", []evidence{look(g, p99)}).did(g))
	}
	return append(criteria, p.ceiling(groups))
}

// did notes the load that a run delivered.
func (c Criterion) did(g *runs.Group) Criterion {
	if g.Failed() {
		return c
	}
	return c.note("delivered %s", delivered(g))
}

// ceiling is the highest rate of reads at which commits keep their limit. What
// is wanted of it is the lower end of V1.
func (p *pair) ceiling(groups []*runs.Group) Criterion {
	c := p.measure(above(PartCombined, "reads/s with commits below 2 s", v1MinReads, "reads/s").at(1), "D4")
	i := slices.IndexFunc(groups, func(g *runs.Group) bool { return g.Get("qps") == ceilingName })
	if i < 0 {
		return c.unknown("no ceiling was searched")
	}
	g := groups[i]
	e := look(g, ceiling)
	if slow := look(g, p99); slow.doubt != "" {
		e.doubt = slow.doubt // what kept its limit is not known
	}
	if !e.failed && e.doubt == "" {
		e.Value = delivered(g).reads
	}
	return p.answer(c, "D4", []evidence{e}).did(g)
}

// largestOf returns the groups at the largest scale.
func largestOf(groups []*runs.Group) []*runs.Group {
	var largest float64
	for _, g := range groups {
		largest = max(largest, scaleOf(g))
	}
	return runs.Where(groups, func(g *runs.Group) bool { return scaleOf(g) == largest })
}
