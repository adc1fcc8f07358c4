package verdict

import (
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/report/runs"
)

// Limits of reads beside writes and of V1.
const (
	blockTime   = 2000.0  // ms: a commit that takes longer misses its block
	v1Entities  = 621_000 // of the data centre
	v1MinWrites = 10_000.0
	v1MaxWrites = 50_000.0 // rows/s
	v1MinReads  = 1_000.0
	v1MaxReads  = 10_000.0 // reads/s
)

var rowsPerSecond = runs.Measure{Unit: "rows/s"}

// combined are commits beside each rate of reads, and the ceiling, at the
// largest scale measured.
func (p *pair) combined() []Criterion {
	groups := largestOf(runs.Of(p.groups, "D4"))
	var criteria []Criterion
	for _, g := range groups {
		if g.Get("qps") == ceilingName {
			continue
		}
		name := "commit p99 beside " + g.Get("qps") + " reads/s"
		if rate := g.Get("rate"); rate != "" && rate != sustainedRate {
			name += " at " + rate + " rows/s"
		}
		c := below(PartCombined, name, blockTime, "ms")
		e, ok := look(g, p99)
		c = p.answer(c, e, ok, "D4", 0)
		if ok && !e.failed {
			c = c.note("%s", loadOf(g))
		}
		criteria = append(criteria, c)
	}
	return append(criteria, p.ceiling(groups))
}

const ceilingName = "ceiling"

// sustainedRate is the rows a second that are asked of writes where nothing else
// is said.
const sustainedRate = "6000"

// ceiling is the highest rate of reads at which commits keep their limit. What
// is wanted of it is the lower end of V1.
func (p *pair) ceiling(groups []*runs.Group) Criterion {
	c := above(PartCombined, "reads/s with commits below 2 s", v1MinReads, "reads/s")
	g := ceilingOf(groups)
	if g == nil {
		return c.unknown(p.command("D4", 0), "no ceiling was searched")
	}
	if g.Failed() {
		return c.crashed(g)
	}
	l := loadOf(g)
	return c.judge(l.reads, g).note("%s", l)
}

func ceilingOf(groups []*runs.Group) *runs.Group {
	i := slices.IndexFunc(groups, func(g *runs.Group) bool { return g.Get("qps") == ceilingName })
	if i < 0 {
		return nil
	}
	return groups[i]
}

// load is what a run did at once.
type load struct {
	group         *runs.Group
	writes, reads float64 // rows/s, reads/s
}

// String is the sweet spot as the documents ask for it.
func (l load) String() string {
	return fmt.Sprintf("%s rows/s + %s reads/s", number(l.writes), number(l.reads))
}

func loadOf(g *runs.Group) load {
	l := load{group: g}
	l.writes, _ = g.Median(rowsPerSecond)
	var ok bool
	if l.reads, ok = g.Median(runs.Measure{Unit: "ceiling-qps"}); !ok {
		l.reads, _ = g.Median(runs.Measure{Unit: "qps"})
	}
	return l
}

// largestOf returns the groups at the largest scale.
func largestOf(groups []*runs.Group) []*runs.Group {
	var largest float64
	for _, g := range groups {
		scale, _ := g.Scale()
		largest = max(largest, scale)
	}
	return runs.Where(groups, func(g *runs.Group) bool {
		scale, _ := g.Scale()
		return scale == largest
	})
}
