package verdict

import (
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/report/runs"
)

// The tree's criterion: "p99 commit latency < 500 ms at 5x with a sustained
// load of ~6K rows/s".
const (
	treeP99   = 500.0 // ms
	treeScale = 5.0
	treeRate  = 6000.0 // rows/s
	// nearly is how much of a rate counts as having sustained it: a run that
	// ends between two commits has a little less.
	nearly = 0.95
)

var p99 = runs.Measure{Unit: "p99-ms"}

// leaves are what to do when an engine meets the criterion.
var leaves = map[string]string{
	"sqlite":   "stay with SQLite",
	"libsql":   "libSQL: the least migration",
	"postgres": "embedded Postgres: accept the operational overhead",
	"duckdb":   "DuckDB: an unexpected win",
}

const noLeaf = "revisit the architecture: sharding, asynchronous writes"

// walk asks engine after engine until one meets the criterion, or until the
// results do not tell.
func walk(groups []*runs.Group, layout string) Walk {
	w := ask(groups, layout)
	w.Leaf += w.doubt()
	return w
}

func ask(groups []*runs.Group, layout string) Walk {
	w := Walk{Layout: layout, Leaf: noLeaf, Steps: []Step{}}
	for _, engine := range Order {
		p := newPair(groups, engine, layout)
		criteria := p.tree()
		step := Step{Engine: engine, Answer: all(criteria), Criteria: criteria}
		w.Steps = append(w.Steps, step)
		switch step.Answer {
		case Pass:
			w.Leaf, w.Engine = leaves[engine], engine
			return w
		case Unknown:
			w.Leaf = "not decided: measure " + engine + " first"
			return w
		}
	}
	return w
}

// doubt says when the way to the leaf rests on what was not measured.
func (w *Walk) doubt() string {
	text := ""
	for _, s := range w.Steps {
		for _, c := range s.Criteria {
			switch {
			case s.Answer == Unknown:
				return "" // the leaf is no answer
			case c.Uncertain:
				text = " (by uncertain extrapolation)"
			case c.Extrapolated && text == "":
				text = " (by extrapolation)"
			}
		}
	}
	return text
}

func (p *pair) tree() []Criterion {
	return []Criterion{p.treeLatency(), p.treeRate()}
}

func (p *pair) treeLatency() Criterion {
	c := below(PartTree, "commit p99 at 5x", treeP99, "ms")
	sustained, grown := p.paced("D1", p99), p.paced("D5", p99)
	for _, points := range [][]evidence{sustained, grown} {
		if e, ok := at(points, treeScale); ok {
			return p.answer(c, e, true, "", 0)
		}
	}
	// A size that an engine could not hold is an answer about all above it.
	for _, points := range [][]evidence{sustained, grown} {
		if n := len(points); n > 0 && points[n-1].failed {
			return c.crashed(points[n-1].group)
		}
	}
	for _, points := range [][]evidence{grown, sustained} {
		if t, ok := fitTrend(points); ok {
			return t.extrapolate(c, treeScale)
		}
	}
	points := slices.Concat(sustained, grown)
	if len(points) == 0 {
		return p.answer(c, evidence{}, false, "D1", treeScale)
	}
	// One size shows no trend. It tells enough only when it is too much already.
	one := points[0]
	if one.value < treeP99 {
		return c.unknown(p.command("D5", 0), "%s ms at scale %s; one size shows no trend", number(one.value), scaleText(one))
	}
	c = c.judge(one.value, one.group)
	c.Extrapolated = true
	return c.note("measured at scale %s only, and too slow there already", scaleText(one))
}

// at returns the evidence at the smallest scale that is at least the given one.
func at(points []evidence, scale float64) (evidence, bool) {
	for _, e := range points {
		if e.scale >= scale {
			return e, true
		}
	}
	return evidence{}, false
}

func (p *pair) treeRate() Criterion {
	c := above(PartTree, "rows/s sustained at 5x", nearly*treeRate, "rows/s")
	// What is written without a pace counts as well: blocks at the pace of the
	// documents may have fewer rows than theirs.
	points := p.curve("D1", rowsPerSecond, ">")
	if len(points) == 0 {
		return p.answer(c, evidence{}, false, "D1", treeScale)
	}
	if e, ok := at(points, treeScale); ok {
		return p.answer(c, e, true, "", 0)
	}
	last := points[len(points)-1]
	c = p.answer(c, last, true, "", 0)
	if last.failed {
		return c
	}
	c.Extrapolated = true
	return c.note("measured at scale %s, not at 5x", scaleText(last))
}

func scaleText(e evidence) string {
	if e.scale == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%g", e.scale)
}
