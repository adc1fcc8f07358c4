// Package verdict walks the decision tree of Arkiv's engineers (SQLite, libSQL, Postgres, DuckDB)
// and says go or no-go to V1, from what a result set has. A criterion passes or fails only where at
// least three measurements have their whole range on one side of the limit; else it is unknown.
package verdict

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/internal/report"
)

// Outcome is the answer to a criterion, and to several that must all hold.
type Outcome string

// Outcomes.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail"
	Unknown Outcome = "unknown"
)

// limit is a figure that is wanted. Of several sources the worst one counts.
type limit struct {
	name  string
	least bool // the figure must be at least that much; else it must be below it
	want  float64
	unit  string
	from  []source
	run   string // experiment that measures it
}

// source is where a figure is found.
type source struct {
	filter, unit string
	bound        string // unit of a figure that is never smaller, and passes for the other: the longest of latencies
}

const (
	nearly  = 0.95 // of a rate that was asked for counts as carried
	atFive  = " /scale:5"
	atV1    = " /scale:(0.776 OR 0.77625 OR 0.78 OR 1)" // 621,000 entities or the next size that is measured
	sixThou = " (/rate:6000 OR experiment:D5)"
)

func reads(mix string) limit {
	return limit{"reads/s of mix " + mix + ", one client", true, 1000, "reads/s", []source{
		{filter: "experiment:C1 /clients:1 /mix:" + mix + atV1, unit: "qps"},
		{filter: "experiment:D5" + atV1, unit: "qps-" + mix},
	}, "C1"}
}

// carried are the limits of a load of rows and reads a second.
func carried(rows, queries float64) []limit {
	asked := fmt.Sprintf("%s rows/s + %s reads/s: ", report.Number(rows), report.Number(queries))
	filter := fmt.Sprintf("experiment:D4 /rate:%.0f /qps:%.0f", rows, queries) + atV1
	return []limit{
		{asked + "rows/s", true, nearly * rows, "rows/s", []source{{filter: filter, unit: "rows/s"}}, "D4"},
		{asked + "reads/s", true, nearly * queries, "reads/s", []source{{filter: filter, unit: "qps"}}, "D4"},
		{asked + "commit p99", false, 2000, "ms", []source{{filter: filter, unit: "p99-ms", bound: "max-ms"}}, "D4"},
		{asked + "read p99", false, 100, "ms", []source{{filter: filter, unit: "read-p99-ms", bound: "read-max-ms"}}, "D4"},
	}
}

// parts are what is asked, in order.
var parts = []struct {
	name   string
	limits []limit
}{
	{treePart, []limit{
		{"commit p99 at 5x", false, 500, "ms", []source{{"experiment:(D1 OR D5)" + atFive + sixThou, "p99-ms", "max-ms"}}, "D5"},
		{"rows/s carried of 6,000 at 5x", true, nearly * 6000, "rows/s", []source{{filter: "experiment:(D1 OR D5)" + atFive + sixThou, unit: "rows/s"}}, "D5"},
	}},
	{"V1, lower end", append([]limit{reads("A"), reads("B"), reads("C")}, carried(10_000, 1_000)...)},
	{"V1, upper end", carried(50_000, 10_000)},
}

const treePart = "decision tree"

// tree is the engines that the decision tree tries, in its order, with what to do when one passes.
var tree = []struct{ engine, leaf string }{
	{"sqlite", "stay with SQLite"},
	{"libsql", "libSQL: the least migration"},
	{"postgres", "embedded Postgres: accept the operational overhead"},
	{"duckdb", "DuckDB"},
}

const noLeaf = "none: revisit the architecture"

// Criterion is a limit with what was measured of it.
type Criterion struct {
	Name    string   `json:"name"`
	Want    string   `json:"want"`
	Median  *float64 `json:"median,omitempty"` // nil: not measured
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	N       int      `json:"n"`
	Outcome Outcome  `json:"outcome"`
	Why     string   `json:"why,omitempty"` // that it is unknown
}

// Part is the criteria of one question.
type Part struct {
	Name     string      `json:"name"`
	Outcome  Outcome     `json:"outcome"`
	Criteria []Criterion `json:"criteria"`
	Command  string      `json:"command,omitempty"` // what would measure the first unknown
}

// Candidate is an engine with a layout.
type Candidate struct {
	Engine string `json:"engine"`
	Layout string `json:"layout"`
	Parts  []Part `json:"parts"`
}

// Walk is the way through the tree with one layout.
type Walk struct {
	Layout string    `json:"layout"`
	Steps  []Outcome `json:"steps"` // of the engines that were asked, in the tree's order
	Leaf   string    `json:"leaf"`
}

// Report is all answers.
type Report struct {
	Walks      []Walk      `json:"walks"`
	Candidates []Candidate `json:"candidates"`
}

// Evaluate answers from a result set, for each layout that keeps a store of entities.
func Evaluate(set *report.Set) (*Report, error) {
	r := &Report{}
	for _, layout := range layouts(set.Lines) {
		w := Walk{Layout: layout}
		for _, step := range tree {
			c := Candidate{Engine: step.engine, Layout: layout}
			for _, p := range parts {
				part, err := c.judge(set, p.name, p.limits)
				if err != nil {
					return nil, err
				}
				c.Parts = append(c.Parts, part)
			}
			r.Candidates = append(r.Candidates, c)
			if w.Leaf == "" {
				w.ask(c.Parts[0].Outcome, step.engine, step.leaf)
			}
		}
		w.Leaf = cmp.Or(w.Leaf, noLeaf)
		r.Walks = append(r.Walks, w)
	}
	return r, nil
}

func (w *Walk) ask(outcome Outcome, engine, leaf string) {
	w.Steps = append(w.Steps, outcome)
	switch outcome {
	case Pass:
		w.Leaf = leaf
	case Unknown:
		w.Leaf = "not known: measure " + engine + " first"
	}
}

// layouts are those of the experiments that are judged, in the order of their names.
func layouts(lines []*benchfmt.Result) (list []string) {
	for _, l := range lines {
		if !slices.Contains([]string{"C1", "D1", "D4", "D5"}, l.GetConfig("experiment")) {
			continue
		}
		if layout := report.Key(l, "layout"); layout != "" && !slices.Contains(list, layout) {
			list = append(list, layout)
		}
	}
	slices.Sort(list)
	return list
}

func (c *Candidate) judge(set *report.Set, name string, limits []limit) (Part, error) {
	p := Part{Name: name, Outcome: Pass}
	for _, l := range limits {
		criterion, err := c.criterion(set, l)
		if err != nil {
			return p, fmt.Errorf("%s: %w", l.name, err)
		}
		p.Criteria = append(p.Criteria, criterion)
		switch {
		case criterion.Outcome == Fail:
			p.Outcome = Fail
		case criterion.Outcome == Unknown && p.Outcome == Pass:
			p.Outcome = Unknown
			p.Command = fmt.Sprintf("varve run %s --engines %s --layouts %s", l.run, c.Engine, c.Layout)
		}
	}
	return p, nil
}

// criterion judges the worst of the figures that a limit's sources have.
func (c *Candidate) criterion(set *report.Set, l limit) (Criterion, error) {
	var worst *report.Figure
	for _, s := range l.from {
		filter := fmt.Sprintf("(%s) /engine:%s /layout:%s", s.filter, c.Engine, c.Layout)
		f, err := set.Figure(filter, s.unit)
		if err != nil {
			return Criterion{}, err
		}
		if s.bound != "" && (f == nil || l.outcome(f) == Unknown) {
			longest, err := set.Figure(filter, s.bound)
			if err != nil {
				return Criterion{}, err
			}
			if longest != nil && l.outcome(longest) == Pass {
				f = longest
			}
		}
		if f != nil && (worst == nil || l.least == (f.Center < worst.Center)) {
			worst = f
		}
	}
	k := Criterion{Name: l.name, Want: fmt.Sprintf("%s %s %s", map[bool]string{true: "≥", false: "<"}[l.least], report.Number(l.want), l.unit), Outcome: Unknown, Why: "not measured"}
	if worst == nil {
		return k, nil
	}
	k.Median, k.Low, k.High, k.N, k.Why = &worst.Center, &worst.Lo, &worst.Hi, worst.N, ""
	k.Outcome = l.outcome(worst)
	switch {
	case worst.N < report.Judged:
		k.Why = fmt.Sprintf("n is below %d", report.Judged)
	case k.Outcome == Unknown:
		k.Why = "the range holds the limit"
	}
	return k, nil
}

// outcome judges a figure.
func (l *limit) outcome(f *report.Figure) Outcome {
	good := func(v float64) bool { return l.least && v >= l.want || !l.least && v < l.want }
	switch {
	case f.N < report.Judged:
		return Unknown
	case good(f.Lo) && good(f.Hi):
		return Pass
	case !good(f.Lo) && !good(f.Hi):
		return Fail
	}
	return Unknown
}

// WriteText writes the answers for readers.
func (r *Report) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "Decision tree: commit p99 below 500 ms at 5x with 6,000 rows/s")
	for _, walk := range append(r.Walks, Walk{})[:max(len(r.Walks), 1)] {
		fmt.Fprintf(out, "  %s\t%s\n", walk.Layout, cmp.Or(walk.Leaf, "not known: nothing was measured"))
	}
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if !slices.ContainsFunc(c.Parts, Part.measured) {
			continue
		}
		fmt.Fprintf(out, "\n%s %s\n", c.Engine, c.Layout)
		for _, p := range c.Parts {
			if !p.measured() {
				fmt.Fprintf(out, "  %s: %s, not measured\n", p.Name, p.Outcome)
				continue
			}
			fmt.Fprintf(out, "  %s: %s\n", p.Name, p.Outcome)
			for _, k := range p.Criteria {
				fmt.Fprintf(out, "    %s\t%s\t%s\t%s\n", k.Name, k.Want, k.figure(), strings.TrimSuffix(string(k.Outcome)+", "+k.Why, ", "))
			}
			if p.Command != "" {
				fmt.Fprintf(out, "    to know it: %s\n", p.Command)
			}
		}
	}
	return out.Flush()
}

func (p Part) measured() bool {
	return slices.ContainsFunc(p.Criteria, func(k Criterion) bool { return k.Median != nil })
}

func (k *Criterion) figure() string {
	switch {
	case k.Median == nil:
		return "–"
	case k.N == 1:
		return report.Number(*k.Median) + " (n=1)"
	}
	return fmt.Sprintf("%s (%s–%s, n=%d)", report.Number(*k.Median), report.Number(*k.Low), report.Number(*k.High), k.N)
}
