// Package answer says what a result set answers to the five questions that the lab is for: a sentence each, by
// a fixed template, above the tables of package report. It also walks the decision tree of Arkiv's engineers
// (SQLite, libSQL, Postgres, DuckDB) and says go or no-go to V1: there a criterion passes or fails only where
// at least three measurements have their whole range on one side of the limit; else it is unknown.
package answer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

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
	nearly      = 0.95 // of a rate that was asked for counts as carried
	baseProfile = "mendoza"
	base        = " /profile:/^(" + baseProfile + ".*)?$/" // its sizes are those of the documents
	atFive      = base + " /scale:5"
	atV1        = base + " /scale:(0.776 OR 0.77625 OR 0.78 OR 1)" // 621,000 entities or the next size that is measured
	beside      = "experiment:(I5 OR D4)" + atV1 + " "
	sixThou     = " (/rate:6000 OR experiment:D5)"
)

func reads(mix string) limit {
	return limit{"reads/s of mix " + mix + ", one client", true, 1000, "reads/s", []source{
		{filter: "experiment:C1 /clients:1 /mix:" + mix + atV1, unit: "qps"},
		{filter: "experiment:D5" + atV1, unit: "qps-" + mix},
	}, "C1"}
}

// carried are the limits of a load of rows and reads a second.
func carried(filter string, rows, queries float64) []limit {
	asked := fmt.Sprintf("%s rows/s + %s reads/s: ", report.Number(rows), report.Number(queries))
	return []limit{
		{asked + "rows/s", true, nearly * rows, "rows/s", []source{{filter: filter, unit: "rows/s"}}, "I5"},
		{asked + "reads/s", true, nearly * queries, "reads/s", []source{{filter: filter, unit: "qps"}}, "I5"},
		{asked + "commit p99", false, report.CommitLimit, "ms", []source{{filter: filter, unit: "p99-ms", bound: "max-ms"}}, "I5"},
		{asked + "read p99", false, report.ReadLimit, "ms", []source{{filter: filter, unit: "read-p99-ms", bound: "read-max-ms"}}, "I5"},
	}
}

// parts are what is asked, in order.
var parts = []struct {
	name   string
	limits []limit
}{
	{treePart, []limit{
		{"commit p99 at 5x", false, 500, "ms", []source{{"experiment:(D1 OR D5)" + atFive + sixThou, "p99-ms", "max-ms"}}, "D1"},
		{"rows/s carried of 6,000 at 5x", true, nearly * 6000, "rows/s", []source{{filter: "experiment:(D1 OR D5)" + atFive + sixThou, unit: "rows/s"}}, "D1"},
	}},
	{"V1, lower end", append([]limit{reads("A"), reads("B"), reads("C")}, carried(beside+"/rate:10000 /qps:1000", 10_000, 1_000)...)},
	{"V1, upper end", carried(beside+"/rate:50000 /qps:10000", 50_000, 10_000)},
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

// Criterion is a limit with what was measured of it, nil for nothing.
type Criterion struct {
	Name    string         `json:"name"`
	Want    string         `json:"want"`
	Figure  *report.Figure `json:"figure,omitempty"`
	Outcome Outcome        `json:"outcome"`
	Why     string         `json:"why,omitempty"` // that it is unknown
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
	candidate
	Parts []Part `json:"parts"`
}

// Walk is the way through the tree with one layout.
type Walk struct {
	Layout string `json:"layout"`
	Leaf   string `json:"leaf"`
}

// walk goes through the tree with each layout that keeps a store of entities.
func (a *Answers) walk(set *report.Set) error {
	judged := only(set, "C1", "D1", "D4", "D5", "I5")
	layouts := judged.Values("layout")
	slices.Sort(layouts)
	for _, layout := range layouts {
		leaf := ""
		for _, step := range tree {
			c := Candidate{candidate: candidate{step.engine, layout}}
			for _, p := range parts {
				part, err := c.judge(judged, p.name, p.limits)
				if err != nil {
					return err
				}
				c.Parts = append(c.Parts, part)
			}
			a.Candidates = append(a.Candidates, c)
			switch outcome := c.Parts[0].Outcome; {
			case leaf == "" && outcome == Pass:
				leaf = step.leaf
			case leaf == "" && outcome == Unknown:
				leaf = "not known: measure " + step.engine + " first"
			}
		}
		a.Walks = append(a.Walks, Walk{layout, cmp.Or(leaf, noLeaf)})
	}
	return nil
}

func (c candidate) judge(set *report.Set, name string, limits []limit) (Part, error) {
	p := Part{Name: name, Outcome: Pass}
	for _, l := range limits {
		k, err := c.criterion(set, l)
		if err != nil {
			return p, fmt.Errorf("%s: %w", l.name, err)
		}
		p.Criteria = append(p.Criteria, k)
		switch {
		case k.Outcome == Fail:
			p.Outcome = Fail
		case k.Outcome == Unknown && p.Outcome == Pass:
			p.Outcome = Unknown
			p.Command = fmt.Sprintf("varve run %s --engines %s --layouts %s", l.run, c.Engine, c.Layout)
		}
	}
	return p, nil
}

func (c candidate) filter(more string) string {
	return fmt.Sprintf("(%s) /engine:%q /layout:%q", more, c.Engine, c.Layout)
}

// criterion judges the worst of the figures that a limit's sources have.
func (c candidate) criterion(set *report.Set, l limit) (Criterion, error) {
	k := Criterion{Name: l.name, Want: fmt.Sprintf("%s %s %s", map[bool]string{true: "≥", false: "<"}[l.least], report.Number(l.want), l.unit), Outcome: Unknown, Why: "not measured"}
	for _, s := range l.from {
		f, err := set.Figure(c.filter(s.filter), s.unit)
		if err == nil && s.bound != "" && (f == nil || l.outcome(f) == Unknown) {
			var longest *report.Figure
			longest, err = set.Figure(c.filter(s.filter), s.bound)
			if longest != nil && (l.outcome(longest) == Pass || f == nil && l.holds(longest)) {
				f = longest
			}
		}
		if err != nil {
			return k, err
		}
		if f != nil && (k.Figure == nil || l.least == (f.Center < k.Figure.Center)) {
			k.Figure, k.Outcome, k.Why = f, l.outcome(f), ""
		}
	}
	switch {
	case k.Figure == nil:
	case k.Figure.N < report.Judged:
		k.Why = fmt.Sprintf("n is below %d", report.Judged)
	case k.Outcome == Unknown:
		k.Why = "the range holds the limit"
	}
	if short := tooShort(set); k.Figure != nil && short != "" {
		k.Outcome, k.Why = Unknown, short
	}
	return k, nil
}

func (l *limit) good(v float64) bool { return l.least && v >= l.want || !l.least && v < l.want }

// holds tells whether the whole range of a figure is good.
func (l *limit) holds(f *report.Figure) bool { return l.good(f.Lo) && l.good(f.Hi) }

// outcome judges a figure.
func (l *limit) outcome(f *report.Figure) Outcome {
	switch {
	case f.N < report.Judged:
		return Unknown
	case l.holds(f):
		return Pass
	case !l.good(f.Lo) && !l.good(f.Hi):
		return Fail
	}
	return Unknown
}

// writeTree writes the way through the tree, and every criterion of what was measured.
func (a *Answers) writeTree(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "Decision tree, on the base profile: commit p99 below 500 ms at 5x with 6,000 rows/s")
	for _, walk := range append(a.Walks, Walk{})[:max(len(a.Walks), 1)] {
		fmt.Fprintf(out, "  %s\t%s\n", walk.Layout, cmp.Or(walk.Leaf, "not known: nothing was measured"))
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
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
				fmt.Fprintf(out, "    %s\t%s\t%s\t%s\n", k.Name, k.Want, k.Figure, strings.TrimSuffix(string(k.Outcome)+", "+k.Why, ", "))
			}
			if p.Command != "" {
				fmt.Fprintf(out, "    to know it: %s\n", p.Command)
			}
		}
	}
	return out.Flush()
}

func (p Part) measured() bool {
	return slices.ContainsFunc(p.Criteria, func(k Criterion) bool { return k.Figure != nil })
}

// Answers is what a result set says.
type Answers struct {
	Questions  []report.Answer `json:"questions"` // the five
	Walks      []Walk          `json:"walks"`
	Candidates []Candidate     `json:"candidates"`
}

// candidate is an engine with a layout.
type candidate struct {
	Engine string `json:"engine"`
	Layout string `json:"layout"`
}

func (c candidate) String() string { return c.Engine + " " + c.Layout }

// Evaluate answers from a result set, and gives each of the questions of its page its sentence.
func Evaluate(set *report.Set, questions []report.Answer) (*Answers, error) {
	a := &Answers{Questions: questions}
	for i := range questions {
		q, err := &questions[i], error(nil)
		if q.Sentence, err = say(set, q.ID); err != nil {
			return nil, fmt.Errorf("question %s: %w", q.ID, err)
		}
	}
	return a, a.walk(set)
}

// WriteText writes the answers for readers.
func (a *Answers) WriteText(w io.Writer) error {
	for i := range a.Questions {
		q := &a.Questions[i]
		fmt.Fprintf(w, "%d. %s\n%s\n\n", i+1, q.Title, q.Sentence)
		if err := report.WriteTables(w, q.Tables); err != nil {
			return err
		}
	}
	return a.writeTree(w)
}
