package verdict

import (
	"fmt"
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
		return g.Get("engine") == engine && len(g.Config) == 1 && g.Failed()
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
	v1 := p.v1()
	a.Criteria = slices.Concat(p.tree(), p.writes(), p.checklist(), p.reorg(), p.combined(), v1)
	a.V1 = decide(v1)
	return a
}

// answer judges evidence; without any the criterion stays unknown, with what is
// known of why, and the command that would measure it.
func (p *pair) answer(c Criterion, e evidence, ok bool, experiment string, scale float64) Criterion {
	switch {
	case ok && e.failed:
		return c.crashed(e.group)
	case ok:
		return c.judge(e.value, e.group)
	}
	if ended := runs.Of(p.ended, experiment); len(ended) > 0 {
		c = c.note("the experiment ended early: %s", ended[0].Records[0].Error)
	}
	return c.unknown(p.command(experiment, scale), "not measured")
}

// command is what measures an experiment of this pair.
func (p *pair) command(experiment string, scale float64) string {
	return Command(experiment, p.engine, p.layout, scale)
}

// Command returns the command line that measures an experiment on an engine and
// a layout; both may be empty for all, and scale 0 for the default.
func Command(experiment, engine, layout string, scale float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "varve run %s", experiment)
	if engine != "" {
		fmt.Fprintf(&b, " --engines %s", engine)
	}
	if layout != "" {
		fmt.Fprintf(&b, " --layouts %s", layout)
	}
	if scale > 0 {
		// A result set is of one scale.
		fmt.Fprintf(&b, " --scale %g --out results/scale-%g", scale, scale)
	}
	return b.String()
}

// evidence is the group that speaks for a pair in an experiment, with its value.
// Failed: it ended in an error and has no value.
type evidence struct {
	group  *runs.Group
	scale  float64 // 0: not stated
	value  float64
	failed bool
}

// curve returns the best value of an experiment at each scale, smallest first.
// Of several configurations the best counts, because a node can choose it.
func (p *pair) curve(experiment string, m runs.Measure, op string) []evidence {
	var points []evidence
	for _, g := range runs.Of(p.groups, experiment) {
		e, ok := look(g, m)
		if !ok {
			continue
		}
		i := slices.IndexFunc(points, func(o evidence) bool { return o.scale == e.scale })
		switch {
		case i < 0:
			points = append(points, e)
		case points[i].failed || !e.failed && better(op, e.value, points[i].value):
			points[i] = e
		}
	}
	slices.SortFunc(points, func(a, b evidence) int {
		if a.scale < b.scale {
			return -1
		}
		return 1
	})
	return points
}

// paced is the curve of a latency, of the runs whose commits came at a pace: as
// fast as they go there is no waiting to see.
func (p *pair) paced(experiment string, m runs.Measure) []evidence {
	q := *p
	q.groups = runs.Where(p.groups, func(g *runs.Group) bool { return g.Get("rate") != "max" })
	return q.curve(experiment, m, "<")
}

func look(g *runs.Group, m runs.Measure) (evidence, bool) {
	scale, _ := g.Scale()
	e := evidence{group: g, scale: scale}
	if g.Failed() {
		e.failed = true
		return e, true
	}
	var ok bool
	e.value, ok = g.Median(m)
	return e, ok
}

func better(op string, a, b float64) bool {
	switch op {
	case "<":
		return a < b
	case "≥":
		return a >= b
	}
	return a > b
}

// largest returns the evidence of an experiment at the largest scale.
func (p *pair) largest(experiment string, m runs.Measure, op string) (evidence, bool) {
	points := p.curve(experiment, m, op)
	if len(points) == 0 {
		return evidence{}, false
	}
	return points[len(points)-1], true
}
