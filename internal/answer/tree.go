// Package answer answers the five questions from a result set: one sentence
// each, from a fixed template, above the tables of package report. It also
// follows the decision tree of Arkiv's engineers (SQLite, libSQL, Postgres,
// DuckDB) and returns go or no-go for V1. A criterion passes or fails only if
// all of at least three runs are on one side of the limit; otherwise it is
// unknown. A killed or failed run counts as bad. Hosts, sizes and experiments
// are not pooled: the worst host counts.
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

// Outcome is the result of one criterion, or of several that must all hold.
type Outcome string

// Outcomes.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail"
	Unknown Outcome = "unknown"
)

// limit is a required figure.
type limit struct {
	name         string
	least        bool // the figure must be at least this; otherwise it must be below
	want         float64
	as           string // the unit in words
	filter, unit string // select the figure: one size of one experiment
	bound        string // unit of an upper bound of the figure, such as the maximum latency: if it passes, the figure passes
	run          string // experiment that measures it
}

const (
	sustainedShare = 0.95 // share of a requested rate from which it counts as sustained
	baseProfile    = "mendoza"
	base           = " /profile:/^(" + baseProfile + ")?$/" // its sizes are as in the documents
	sixThou        = "experiment:D1 /rate:6000 /scale:5" + base
	concurrent     = "experiment:I5 /scale:0.77625" + base + " " // 621,000 entities
)

func reads(mix string) limit {
	return limit{"reads/s of mix " + mix + ", one client, scale 1", true, 1000, "reads/s", "experiment:C1 /clients:1 /scale:1 /mix:" + mix + base, "qps", "", "C1"}
}

// sustainLimits are the limits for a load of rows and reads a second.
func sustainLimits(filter string, rows, queries float64) []limit {
	asked := fmt.Sprintf("%s rows/s + %s reads/s: ", report.Number(rows), report.Number(queries))
	return []limit{
		{asked + "rows/s", true, sustainedShare * rows, "rows/s", filter, "rows/s", "", "I5"},
		{asked + "reads/s", true, sustainedShare * queries, "reads/s", filter, "qps", "", "I5"},
		{asked + "commit p99", false, report.CommitLimit, "ms", filter, "p99-ms", "max-ms", "I5"},
		{asked + "read p99", false, report.ReadLimit, "ms", filter, "read-p99-ms", "read-max-ms", "I5"},
	}
}

// parts are the questions, in order.
var parts = []struct {
	name   string
	limits []limit
}{
	{treePart, []limit{
		{"commit p99 at 5x", false, 500, "ms", sixThou, "p99-ms", "max-ms", "D1"},
		{"rows/s carried of 6,000 at 5x", true, sustainedShare * 6000, "rows/s", sixThou, "rows/s", "", "D1"},
	}},
	{"V1, lower end, 621,000 entities", append([]limit{reads("A"), reads("B"), reads("C")}, sustainLimits(concurrent+"/rate:10000 /qps:1000", 10_000, 1_000)...)},
	{"V1, upper end, 621,000 entities", sustainLimits(concurrent+"/rate:50000 /qps:10000", 50_000, 10_000)},
}

const treePart = "decision tree"

// tree lists the engines that the decision tree tries, in order, with the
// action when one passes.
var tree = []struct{ engine, leaf string }{
	{"sqlite", "stay with SQLite"},
	{"libsql", "libSQL: the least migration"},
	{"postgres", "embedded Postgres: accept the operational overhead"},
	{"duckdb", "DuckDB"},
}

const (
	noLeaf    = "none: revisit the architecture"
	noWalk    = "not known: nothing was measured"
	treeTitle = "Decision tree, on the base profile: 99 % of commits below 500 ms at 5x with 6,000 rows/s"
)

// Criterion is a limit with its measurements; nil for none.
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

// Walk is the path through the tree with one layout.
type Walk struct {
	Layout string `json:"layout"`
	Leaf   string `json:"leaf"`
}

// walk walks the tree with each layout that stores entities.
func (a *Answers) walk(set *report.Set) {
	judged := only(set, "C1", "D1", "I5")
	_, tried := candidates(judged)
	layouts := tried.Values("layout")
	slices.Sort(layouts)
	for _, layout := range layouts {
		leaf := ""
		for _, step := range tree {
			c := Candidate{candidate: candidate{step.engine, layout}}
			for _, p := range parts {
				c.Parts = append(c.Parts, c.judge(judged, p.name, p.limits))
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
}

func (c candidate) judge(set *report.Set, name string, limits []limit) Part {
	p := Part{Name: name, Outcome: Pass}
	for _, l := range limits {
		k := c.criterion(set, l)
		p.Criteria = append(p.Criteria, k)
		switch {
		case k.Outcome == Fail:
			p.Outcome = Fail
		case k.Outcome == Unknown && p.Outcome == Pass:
			p.Outcome = Unknown
			p.Command = fmt.Sprintf("varve run %s --engines %s --layouts %s", l.run, c.Engine, c.Layout)
		}
	}
	return p
}

func (c candidate) filter(more string) string {
	return fmt.Sprintf("(%s) /engine:%q /layout:%q", more, c.Engine, c.Layout)
}

// criterion judges a limit on each host that measured it; the worst one counts.
func (c candidate) criterion(set *report.Set, l limit) Criterion {
	k := Criterion{Name: l.name, Want: fmt.Sprintf("%s %s %s", map[bool]string{true: "≥", false: "<"}[l.least], report.Number(l.want), l.as), Outcome: Unknown, Why: map[bool]string{true: "not measured", false: "not asked"}[l.run == "C1"]}
	filter, failed := c.filter(l.filter), set.Failed(c.filter(l.filter))
	for _, on := range set.OnHosts(filter) {
		f, err := set.Figure(on, l.unit)
		if err != nil {
			k.Why = err.Error()
			return k
		}
		if l.bound != "" && (f == nil || l.outcome(f) == Unknown) {
			longest, err := set.Figure(on, l.bound)
			if err == nil && longest != nil && (l.outcome(longest) == Pass || f == nil && l.passes(longest) == longest.Total()) {
				f = longest
			}
		}
		if f != nil && (k.Figure == nil || l.least == (f.Center < k.Figure.Center)) {
			k.Figure, k.Outcome, k.Why = f, l.outcome(f), ""
		}
	}
	short := tooShort(set)
	switch {
	case failed > 0:
		k.Outcome, k.Why = Fail, fmt.Sprintf("%d runs were killed or failed", failed)
	case k.Figure == nil:
	case short != "":
		k.Outcome, k.Why = Unknown, short
	case k.Figure.Total() < report.Judged:
		k.Why = fmt.Sprintf("fewer than %d runs", report.Judged)
	case k.Outcome == Unknown:
		k.Why = "runs are on both sides of the limit"
	}
	return k
}

// passes counts the runs of a figure on the good side of the limit.
func (l *limit) passes(f *report.Figure) (n int) {
	for _, r := range f.Runs {
		for _, v := range r.Values {
			if l.least == (v >= l.want) {
				n++
			}
		}
	}
	return n
}

// outcome judges a figure.
func (l *limit) outcome(f *report.Figure) Outcome {
	switch good, all := l.passes(f), f.Total(); {
	case all < report.Judged || f.Busy > 0:
		return Unknown
	case good == all:
		return Pass
	case good == 0:
		return Fail
	}
	return Unknown
}

// writeTree writes the path through the tree, and every criterion with
// measurements.
func (a *Answers) writeTree(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, treeTitle)
	for _, walk := range append(a.Walks, Walk{})[:max(len(a.Walks), 1)] {
		fmt.Fprintf(out, "  %s\t%s\n", walk.Layout, cmp.Or(walk.Leaf, noWalk))
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		if !slices.ContainsFunc(c.Parts, Part.measured) {
			continue
		}
		fmt.Fprintf(out, "\n%s %s\n", c.Engine, c.Layout)
		for _, p := range c.Parts {
			if !p.measured() {
				fmt.Fprintf(out, "  %s: %s, not asked\n", p.Name, p.Outcome)
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

// Answers are the answers of a result set.
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

// candidates returns the measured engines and layouts of a set, failed ones
// included, the reference first, and the set of their lines.
func candidates(set *report.Set) (list []candidate, tried *report.Set) {
	tried = &report.Set{}
	for _, l := range slices.Concat(set.Lines, set.Excluded) {
		c := candidate{report.Key(l, "engine"), report.Key(l, "layout")}
		if c.Layout == "" {
			continue
		}
		tried.Lines = append(tried.Lines, l)
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list, tried
}

// Evaluate computes the answers of a result set, and adds a sentence to each of
// the given questions.
func Evaluate(set *report.Set, questions []report.Answer) *Answers {
	a := &Answers{Questions: questions}
	for i := range questions {
		questions[i].Sentence, questions[i].Unjudged = sentenceOf(set, questions[i].ID)
	}
	a.walk(set)
	return a
}

// WriteText writes the answers as text, with all tables and criteria.
func (a *Answers) WriteText(w io.Writer) error {
	for i := range a.Questions {
		if _, err := io.WriteString(w, a.verdict(i)+"\n"); err != nil {
			return err
		}
		if err := report.WriteTables(w, a.Questions[i].Tables); err != nil {
			return err
		}
	}
	return a.writeTree(w)
}

// maxLines is the number of lines of a short answer, to fit a screen.
const maxLines = 40

// WriteShort writes the answers for a screen: the table of the deciding
// figures, with fewer rows if they do not fit, a verdict for each question, and
// the leaves of the tree.
func (a *Answers) WriteShort(w io.Writer, glance *report.Table) error {
	var b strings.Builder
	for i := range a.Questions {
		b.WriteString(a.verdict(i))
	}
	fmt.Fprintf(&b, "\n%s:\n", treeTitle)
	for _, walk := range a.Walks {
		fmt.Fprintf(&b, "   %s: %s\n", walk.Layout, walk.Leaf)
	}
	if len(a.Walks) == 0 {
		b.WriteString("   " + noWalk + "\n")
	}
	if glance != nil {
		const around = 3 + 1 + 1 // the heading, the line about omitted rows, and an empty line
		t := *glance
		t.Title += ": medians, whose ranges are in the page"
		t.Rows = nil
		for _, row := range glance.Rows {
			row = slices.Clone(row)
			for i := range row {
				row[i].Range = ""
			}
			t.Rows = append(t.Rows, row)
		}
		room := maxLines - strings.Count(b.String()+report.Wrap(t.Note, ""), "\n") - around
		if left := len(t.Rows) - max(room, 0); left > 0 {
			t.Rows = t.Rows[:len(t.Rows)-left]
			t.Note += fmt.Sprintf("\n%d more rows are in the page and with -v", left)
		}
		if len(t.Rows) > 0 {
			if err := report.WriteTables(w, []*report.Table{&t}); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// verdict writes the sentence of a question below its title. If an earlier
// question has the same sentence, it refers to that.
func (a *Answers) verdict(i int) string {
	const indent = "   "
	q := &a.Questions[i]
	text := fmt.Sprintf("%d. %s: ", i+1, q.Title)
	if i > 0 && q.Sentence == a.Questions[i-1].Sentence {
		return text + "the same.\n"
	}
	text = report.Wrap(text+q.Sentence, indent)
	if q.Unjudged != "" {
		text += report.Wrap(indent+"Not judged: "+q.Unjudged+".", indent)
	}
	return text
}
