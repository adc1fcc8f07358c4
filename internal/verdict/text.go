package verdict

import (
	_ "embed" // text.tmpl
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/varvedb/varve/bench/stat"
	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/schemas"
)

//go:embed text.tmpl
var textTemplate string

var text = template.Must(template.New("text").Funcs(template.FuncMap{"excluded": runs.Excluded}).Parse(textTemplate))

// WriteText writes the evaluation for readers: the sentence, what was left out, the
// walks through the tree, the decisions, every criterion, and what to run for
// those that are not known.
func (r *Report) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	return errors.Join(text.Execute(table, r), table.Flush())
}

// Wanted writes what is wanted: "< 500 ms".
func (c *Criterion) Wanted() string { return c.Op + " " + runs.Number(c.Want) + " " + c.Unit }

// Measured writes what was measured, or "-".
func (c *Criterion) Measured() string {
	if c.Got == nil {
		return "-"
	}
	text := runs.Number(*c.Got) + " " + c.Unit
	if c.Repetitions > 0 {
		text += fmt.Sprintf(" (n=%d)", c.Repetitions)
	}
	return text
}

// Times writes the margin: "2.4×", or "-".
func (c *Criterion) Times() string {
	if c.Margin == nil {
		return "-"
	}
	return runs.Number(*c.Margin) + "×"
}

// Answer writes the verdict, and whether it is one by extrapolation.
func (c *Criterion) Answer() string {
	if c.Extrapolated {
		return string(c.Verdict) + " (extrapolated)"
	}
	return string(c.Verdict)
}

// Sentence writes the criterion on one line.
func (c *Criterion) Sentence() string {
	text := fmt.Sprintf("%s: wanted %s, got %s", c.Name, c.Wanted(), c.Measured())
	if c.Margin != nil {
		text += ", margin " + c.Times()
	}
	text += ", " + c.Answer()
	if c.Note != "" {
		text += " (" + c.Note + ")"
	}
	return text
}

// interval writes an interval, unless it is so wide that its ends mean nothing.
func interval(s stat.Summary, unit string) string {
	if s.High > 1e4*s.Low {
		return "an interval wider than a factor of 10,000"
	}
	return fmt.Sprintf("the interval %s–%s %s", runs.Number(s.Low), runs.Number(s.High), unit)
}

// Command returns the command line that measures experiments on an engine and a
// layout for long enough to be judged; both may be empty for all, and scale 0
// for the default.
func Command(experiments, engine, layout string, scale float64) string {
	text := "varve run " + experiments
	if engine != "" {
		text += " --engines " + engine
	}
	if layout != "" {
		text += " --layouts " + layout
	}
	if scale > 0 {
		// Two minutes are 1,000 commits at the pace of the documents. All go into
		// one result set, or they would not be judged together.
		text += fmt.Sprintf(" --scale %g --phase 2m %s --timeout 3h --out results/decide", scale, blocks(enoughBlocks))
	}
	return text
}

func blocks(n int) string { return fmt.Sprintf("--blocks %d", n) }

// Commands returns what to run for everything that is unknown, each once.
func (r *Report) Commands() []string {
	var criteria []Criterion
	for _, w := range r.Walks {
		criteria = append(criteria, w.Steps[len(w.Steps)-1].Criteria...) // the others are assessed
	}
	for _, a := range r.Assessments {
		criteria = append(criteria, a.Criteria...)
	}
	var commands []string
	for _, c := range criteria {
		if c.Verdict == Unknown && c.Command != "" {
			commands = runs.AppendNew(commands, c.Command)
		}
	}
	return commands
}

// sentence says what to choose and under which conditions, or what to measure.
// The tree's order decides between engines that both meet what is asked, and an
// engine before them that may as well keeps it open.
func (r *Report) sentence() string {
	if len(r.Assessments) == 0 {
		return "Not known: there is no record to decide from of " + strings.Join(judged, ", ") +
			" from a clean revision; measure next: " + Command("C1 D", "", "", 1)
	}
	failed, open := 0, ""
	for i := range r.Assessments {
		a := &r.Assessments[i]
		switch {
		case a.Meets == Unknown:
			open = a.Layout
		case a.Meets == Fail:
			failed++
		case a.Layout != open:
			return fmt.Sprintf("Choose %s, by what was measured at revision %s: %s%s.", a.name(), r.revisions(), a.conditions(), r.others(a))
		}
	}
	of := fmt.Sprintf("of the %d engines with a layout that were measured at revision %s", len(r.Assessments), r.revisions())
	if failed == len(r.Assessments) {
		return "Choose none " + of + ", since each misses a target: " + noLeaf + "."
	}
	missed := fmt.Sprintf("%d miss a target and the others are open", failed)
	if failed == 0 {
		missed = "none is known to meet or to miss every target"
	}
	return fmt.Sprintf("Not known: %s, %s; measure next: %s", of, missed, r.next())
}

// revisions names that of the records, and those of experiments that are of another.
func (r *Report) revisions() string {
	if others := runs.Others(r.Others); others != "" {
		return runs.Short(r.Revision) + " (" + others + ")"
	}
	return runs.Short(r.Revision)
}

// name says which engine with which layout it is, and what the layout cannot do.
func (a *Assessment) name() string {
	text := a.Engine + " with layout " + a.Layout
	if !schemas.KeepsHistory(a.Layout) {
		text += ", which keeps no history"
	}
	return text
}

// others names those that meet every target as well: which is better the targets do not
// tell.
func (r *Report) others(chosen *Assessment) string {
	var names []string
	for i := range r.Assessments {
		if a := &r.Assessments[i]; a != chosen && a.Meets == Pass {
			names = append(names, a.name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; every target is met as well by " + strings.Join(names, ", ")
}

// conditions are the figures that a choice rests on.
func (a *Assessment) conditions() string {
	var parts []string
	for _, c := range a.decisive() {
		parts = append(parts, fmt.Sprintf("%s %s at scale %s", c.Name, c.Measured(), c.Scale))
	}
	return strings.Join(parts, ", ")
}

// next is the command that would decide most about the engine and layout of which
// most is known to be good.
func (r *Report) next() string {
	open := slices.DeleteFunc(slices.Clone(r.Assessments), func(a Assessment) bool { return a.Meets != Unknown })
	passed := func(a Assessment) int {
		return len(a.where(func(c *Criterion) bool { return c.Decides && c.Verdict == Pass }))
	}
	best := slices.MaxFunc(open, func(a, b Assessment) int { return passed(a) - passed(b) })
	missing := best.where(func(c *Criterion) bool { return c.Decides && c.Verdict != Pass })
	wanted := runs.By(missing, func(c Criterion) string { return c.Command })
	return slices.MaxFunc(wanted, func(a, b []Criterion) int { return len(a) - len(b) })[0].Command
}
