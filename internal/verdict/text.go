package verdict

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteText writes the evaluation for readers: the walks through the tree, the
// decisions, every criterion, and what to run for those that are not known.
func (r *Report) WriteText(w io.Writer) error {
	if len(r.Assessments) == 0 {
		_, err := fmt.Fprintf(w, "nothing to decide from: no record of %s with an engine and a layout\n  %s\n",
			strings.Join(judged, ", "), Command("D", "", "", 0))
		return err
	}
	p := &printer{w: w}
	p.printf("Decision tree: commit p99 < %s ms at %gx with %s rows/s sustained\n", number(treeP99), treeScale, number(treeRate))
	for _, walk := range r.Walks {
		p.walk(&walk)
	}
	p.printf("\nV1: 621,000 entities, 10–50K rows/s with 1–10K reads/s\n")
	for i := range r.Assessments {
		a := &r.Assessments[i]
		p.printf("  %-10s %s %s\n", a.V1, a.Engine, a.Layout)
	}
	for i := range r.Assessments {
		p.assessment(&r.Assessments[i])
	}
	p.commands(r)
	return p.err
}

// printer keeps the first error of writing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	_, err := fmt.Fprintf(p.w, format, args...)
	p.err = errors.Join(p.err, err)
}

func (p *printer) walk(w *Walk) {
	p.printf("\nlayout %s: %s\n", w.Layout, w.Leaf)
	for _, s := range w.Steps {
		p.printf("  %-8s %s\n", s.Engine, s.Answer)
		for _, c := range s.Criteria {
			p.printf("    %s\n", c.Sentence())
		}
	}
}

func (p *printer) assessment(a *Assessment) {
	p.printf("\n%s %s\n", a.Engine, a.Layout)
	w := tabwriter.NewWriter(p.w, 0, 4, 2, ' ', 0)
	part := ""
	for _, c := range a.Criteria {
		if c.Part != part {
			part = c.Part
			fmt.Fprintf(w, "  %s\t\t\t\t\t\n", part)
		}
		fmt.Fprintf(w, "    %s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Wanted(), c.Measured(), c.Times(), c.Answer(), c.Note)
	}
	p.err = errors.Join(p.err, w.Flush())
}

// commands lists what to run for everything unknown.
func (p *printer) commands(r *Report) {
	commands := r.Commands()
	if len(commands) == 0 {
		return
	}
	p.printf("\nNot known; to measure it:\n")
	for _, c := range commands {
		p.printf("  %s\n", c)
	}
}

// Commands returns what to run for everything that is unknown, each once.
func (r *Report) Commands() []string {
	var commands []string
	add := func(c Criterion) {
		if c.Command != "" && !slices.Contains(commands, c.Command) {
			commands = append(commands, c.Command)
		}
	}
	for _, w := range r.Walks {
		for _, s := range w.Steps {
			for _, c := range s.Criteria {
				add(c)
			}
		}
	}
	for _, a := range r.Assessments {
		for _, c := range a.Criteria {
			add(c)
		}
	}
	return commands
}

// Wanted writes what is wanted: "< 500 ms".
func (c *Criterion) Wanted() string {
	if c.Unit == "of the load" {
		return "all of it"
	}
	return c.Op + " " + number(c.Want) + " " + c.Unit
}

// Measured writes what was measured, or "-".
func (c *Criterion) Measured() string {
	if c.Got == nil {
		return "-"
	}
	if c.Unit == "of the load" {
		return number(100**c.Got) + " %"
	}
	return number(*c.Got) + " " + c.Unit
}

// Times writes the margin: "2.4×", or "-".
func (c *Criterion) Times() string {
	if c.Margin == nil {
		return "-"
	}
	return number(*c.Margin) + "×"
}

// Answer writes the verdict, and whether it is one by extrapolation.
func (c *Criterion) Answer() string {
	if c.Uncertain {
		return string(c.Verdict) + " (extrapolated, uncertain)"
	}
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
