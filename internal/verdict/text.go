package verdict

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/varvedb/varve/internal/report/runs"
)

// WriteText writes the evaluation for readers: the sentence, what was left out, the
// walks through the tree, the decisions, every criterion, and what to run for
// those that are not known.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for _, line := range []string{r.Sentence, r.Excluded()} {
		if line != "" {
			fmt.Fprintln(&b, line)
		}
	}
	if len(r.Assessments) > 0 {
		fmt.Fprintf(&b, "\nDecision tree: commit p99 < %s ms at %gx with %s rows/s sustained\n", runs.Number(treeP99), treeScale, runs.Number(treeRate))
		for i := range r.Walks {
			r.Walks[i].text(&b)
		}
		fmt.Fprintf(&b, "\nV1: 621,000 entities, 10–50K rows/s with 1–10K reads/s\n")
		for _, a := range r.Assessments {
			fmt.Fprintf(&b, "  %-10s %s %s\n", a.V1, a.Engine, a.Layout)
		}
		for i := range r.Assessments {
			r.Assessments[i].text(&b)
		}
		for i, c := range r.Commands() {
			if i == 0 {
				fmt.Fprintf(&b, "\nNot known; to measure it:\n")
			}
			fmt.Fprintf(&b, "  %s\n", c)
		}
	}
	_, err := b.WriteTo(w)
	return err
}

func (w *Walk) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nlayout %s: %s\n", w.Layout, w.Leaf)
	for _, s := range w.Steps {
		fmt.Fprintf(b, "  %-8s %s\n", s.Engine, s.Answer)
		for _, c := range s.Criteria {
			fmt.Fprintf(b, "    %s\n", c.Sentence())
		}
	}
}

func (a *Assessment) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%s %s\n", a.Engine, a.Layout)
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	part := ""
	for _, c := range a.Criteria {
		if c.Part != part {
			part = c.Part
			fmt.Fprintf(w, "  %s\t\t\t\t\t\n", part)
		}
		fmt.Fprintf(w, "    %s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Wanted(), c.Measured(), c.Times(), c.Answer(), c.Note)
	}
	_ = w.Flush() // into a buffer
}

// Commands returns what to run for everything that is unknown, each once.
func (r *Report) Commands() []string {
	var commands []string
	add := func(c Criterion) {
		if c.Verdict == Unknown && c.Command != "" && !slices.Contains(commands, c.Command) {
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
		return "95 % of it"
	}
	return c.Op + " " + runs.Number(c.Want) + " " + c.Unit
}

// Measured writes what was measured, or "-".
func (c *Criterion) Measured() string {
	if c.Got == nil {
		return "-"
	}
	text := runs.Number(*c.Got) + " " + c.Unit
	if c.Unit == "of the load" {
		text = runs.Number(100**c.Got) + " %"
	}
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
