package verdict

import (
	"slices"

	"github.com/varvedb/varve/internal/report/runs"
)

// The tree's criterion: "p99 commit latency < 500 ms at 5x with a sustained
// load of ~6K rows/s".
const (
	treeP99   = 500.0 // ms
	treeScale = 5.0
	treeRate  = 6000.0 // rows/s
)

var (
	p99            = runs.Measure{Unit: "p99-ms"}
	longest        = runs.Measure{Unit: "max-ms"}
	rowsPerSecond  = runs.Measure{Unit: "rows/s"}
	readsPerSecond = runs.Measure{Unit: "qps"}
	ceiling        = runs.Measure{Unit: "ceiling-qps"}
)

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
	w := Walk{Layout: layout, Leaf: noLeaf, Steps: []Step{}}
	for _, engine := range Order {
		criteria := newPair(groups, engine, layout).tree()
		step := Step{Engine: engine, Answer: all(criteria), Criteria: criteria}
		w.Steps = append(w.Steps, step)
		switch step.Answer {
		case Pass:
			w.Leaf, w.Engine = leaves[engine], engine
			if slices.ContainsFunc(criteria, func(c Criterion) bool { return c.Extrapolated }) {
				w.Leaf += " (by extrapolation)"
			}
			return w
		case Unknown:
			w.Leaf = "not known: measure " + engine + " first"
			return w
		}
	}
	return w
}

func (p *pair) tree() []Criterion {
	latency := below(PartTree, "commit p99 at 5x", treeP99, "ms").at(treeScale)
	rate := above(PartTree, "rows/s sustained at 5x", nearly*treeRate, "rows/s").at(treeScale)
	// What is written without a pace counts for the rate as well: blocks at the
	// pace of the documents may have fewer rows than theirs.
	return []Criterion{
		p.treeLatency(p.measure(latency, "D1")),
		p.answer(p.measure(rate, "D1"), "D1", curve(p.groups, rowsPerSecond, of("D1", "D5"))),
	}
}

func (p *pair) treeLatency(c Criterion) Criterion {
	points := curve(p.groups, p99, paced("D1", "D5"))
	// A size that an engine could not hold, or was too slow at, is an answer about
	// all above it.
	for _, e := range slices.Backward(points) {
		if answer := p.answer(c, "D1", []evidence{e}); answer.Verdict == Fail || e.scale >= treeScale && e.doubt == "" {
			return answer
		}
	}
	if len(points) == 0 {
		return p.answer(c, "D1", nil)
	}
	return c.extrapolate(points)
}
