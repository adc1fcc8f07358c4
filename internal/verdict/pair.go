package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/report/runs"
)

// pair is an engine with a layout and what was measured of them.
type pair struct {
	engine, layout string
	groups         []*runs.Group
	ended          []*runs.Group // experiments whose process ended before it had measured all
}

// newPair takes the durable runs. Where an experiment has none it takes the
// others, and the criteria say which.
func newPair(groups []*runs.Group, engine, layout string) *pair {
	p := &pair{engine: engine, layout: layout}
	p.ended = runs.Where(groups, func(g *runs.Group) bool {
		return g.Get("engine") == engine && isEnd(g.Records[0])
	})
	own := runs.Where(groups, func(g *runs.Group) bool {
		return g.Get("engine") == engine && g.Get("layout") == layout && slices.Contains(judged, g.Experiment)
	})
	for _, id := range judged {
		of := runs.Of(own, id)
		durable := runs.Where(of, isDurable)
		if len(durable) > 0 {
			of = durable
		}
		p.groups = append(p.groups, of...)
	}
	return p
}

func isDurable(g *runs.Group) bool {
	d := g.Get("durability")
	return d == "" || d == "durable"
}

func (p *pair) assess() Assessment {
	a := Assessment{Engine: p.engine, Layout: p.layout}
	tree, v1 := p.tree(), p.v1()
	a.Criteria = slices.Concat(tree, p.writes(), p.checklist(), p.reorg(), p.combined(), v1)
	a.V1 = decide(v1)
	a.Meets = all(slices.Concat(tree, required(v1)))
	return a
}

// measure gives a criterion the command that measures it on this pair.
func (p *pair) measure(c Criterion, experiments string) Criterion {
	c.Command = Command(experiments, p.engine, p.layout, math.Ceil(10*c.At)/10)
	return c
}

// answer judges a criterion by the evidence at the largest scale that can be
// judged; without any it stays unknown, with what is known of why.
func (p *pair) answer(c Criterion, experiment string, points []evidence) Criterion {
	if len(points) == 0 {
		if ended := runs.Of(p.ended, experiment); len(ended) > 0 {
			c = c.note("the experiment ended early: %s", ended[0].Records[0].Error)
		}
		return c.unknown("not measured")
	}
	e := points[len(points)-1]
	if e.failed {
		return c.crashed(e.group)
	}
	for _, o := range slices.Backward(points) {
		if e.doubt != "" && o.doubt == "" {
			e = o
		}
	}
	for _, o := range points {
		if o.doubt == "" && o.scale < e.scale && e.scale < c.At && better(c.Op, e.Value, o.Value) {
			e.hard = "it got no worse with size"
		}
	}
	return c.judge(e)
}

// Command returns the command line that measures experiments on an engine and a
// layout for long enough to be judged; both may be empty for all, and scale 0
// for the default.
func Command(experiments, engine, layout string, scale float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "varve run %s", experiments)
	if engine != "" {
		fmt.Fprintf(&b, " --engines %s", engine)
	}
	if layout != "" {
		fmt.Fprintf(&b, " --layouts %s", layout)
	}
	if scale > 0 {
		// Two minutes are 1,000 commits at the pace of the documents. All go into
		// one result set, or they would not be judged together.
		fmt.Fprintf(&b, " --scale %g --phase 2m --timeout 3h --out results/decide", scale)
	}
	return b.String()
}

// curve returns a figure at each scale, smallest first, of the groups that keep
// says. Of several at one size the larger one counts: a rate is what an engine
// can do, a latency what it may take.
func curve(groups []*runs.Group, m runs.Measure, keep func(*runs.Group) bool) []evidence {
	var points []evidence
	for _, g := range runs.Where(groups, keep) {
		e := look(g, m)
		i := slices.IndexFunc(points, func(o evidence) bool { return o.scale == e.scale })
		switch {
		case i < 0:
			points = append(points, e)
		case cmp.Or(cmp.Compare(e.rank(), points[i].rank()), cmp.Compare(e.Value, points[i].Value)) > 0:
			points[i] = e
		}
	}
	return bySize(points)
}

func bySize(points []evidence) []evidence {
	slices.SortStableFunc(points, func(a, b evidence) int { return cmp.Compare(a.scale, b.scale) })
	return points
}

// of keeps the groups of experiments.
func of(ids ...string) func(*runs.Group) bool {
	return func(g *runs.Group) bool { return slices.Contains(ids, g.Experiment) }
}

// paced keeps the groups of experiments whose commits came at the pace of the
// documents: as fast as they go there is no waiting to see.
func paced(ids ...string) func(*runs.Group) bool {
	return func(g *runs.Group) bool {
		return slices.Contains(ids, g.Experiment) && asked(g).writes == treeRate
	}
}
