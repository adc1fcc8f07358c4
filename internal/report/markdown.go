package report

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/report/runs"
)

// Markdown writes tables one after the other, in the dialect of GitHub.
func Markdown(tables []Table) string {
	parts := make([]string, len(tables))
	for i, t := range tables {
		parts[i] = t.markdown()
	}
	return strings.Join(parts, "\n")
}

func (t *Table) markdown() string {
	return joinWords("\n\n", t.Caption, t.lines(), strings.Join(t.Notes, "\n")) + "\n"
}

var escape = strings.NewReplacer("|", `\|`, "\n", " ")

// lines are the head, the rule below it, which puts figures to the right, and the
// rows.
func (t *Table) lines() string {
	if len(t.Columns) == 0 {
		return ""
	}
	head, rule := "|", "|"
	for _, c := range t.Columns {
		head += " " + escape.Replace(c.Head) + " |"
		if rule += "---"; c.Numeric {
			rule += ":"
		}
		rule += "|"
	}
	lines := []string{head, rule}
	for _, row := range t.Rows {
		line := "|"
		for _, c := range row {
			line += " " + escape.Replace(c.line()) + " |"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// line is a cell where there is one line for it.
func (c *Cell) line() string {
	switch {
	case c.Text == "":
		return "–"
	case c.Spread == "":
		return c.strong()
	}
	return c.strong() + " (" + c.Spread + ")"
}

// strong is the text, emphasised where it is the best of its row.
func (c *Cell) strong() string {
	if c.Class == "best" {
		return "**" + c.Text + "**"
	}
	return c.Text
}

// A place for tables begins with <!-- table:NAME --> and ends with
// <!-- /table:NAME -->, each on a line of its own. Names are the ids of
// experiments, those after peers: for what others did on one or on a section, and those of
// overviews; several have commas between them.
var place = regexp.MustCompile(`(?ms)^<!-- table:([^ ]+) -->\n(?:.*?^<!-- /table:([^ ]+) -->)?`)

// RenderMarkdown puts the tables into their places in a document, as Fill does.
func RenderMarkdown(document string, in *Input) (string, error) {
	return Fill(document, func(name string) ([]Table, error) { return tablesOf(in, name) })
}

// Fill puts tables into their places in a document and leaves the rest as it is. It
// fails for a place that does not end, and for a name of which there are no tables.
func Fill(document string, tables func(name string) ([]Table, error)) (string, error) {
	var failed error
	text := place.ReplaceAllStringFunc(document, func(old string) string {
		at := place.FindStringSubmatch(old)
		list, err := tables(at[1])
		if at[1] != at[2] {
			err = fmt.Errorf("table %s: no <!-- /table:%s --> after it", at[1], at[1])
		}
		failed = errors.Join(failed, err)
		return fmt.Sprintf("<!-- table:%s -->\n\n%s\n<!-- /table:%s -->", at[1], Markdown(list), at[1])
	})
	return text, failed
}

// tablesOf returns what names in a document stand for.
func tablesOf(in *Input, names string) (tables []Table, err error) {
	for name := range strings.SplitSeq(names, ",") {
		some, fault := named(in, name)
		tables, err = append(tables, some...), errors.Join(err, fault)
	}
	return tables, err
}

func named(in *Input, name string) ([]Table, error) {
	if slices.Contains(in.ids(), name) {
		return Brief(in, name), nil
	}
	if of, ok := strings.CutPrefix(name, "peers:"); ok && slices.ContainsFunc(in.ids(), func(id string) bool { return strings.HasPrefix(id, of) }) {
		return peerTables(in, of), nil
	}
	r := in.evaluation()
	switch name {
	case "verdict":
		return []Table{{Caption: r.Sentence, Notes: nonempty(sentence(runs.Excluded(r.LeftOut)))}}, nil
	case "v1":
		return []Table{decisionTable(r)}, nil
	case "criteria":
		return criteriaTables(r), nil
	case "ranking":
		return []Table{shortRanking(in)}, nil
	case "machine":
		list, err := in.manifests()
		return []Table{*machine(in, list)}, err
	case "coverage":
		return []Table{coverage(in)}, nil
	case "best":
		return []Table{best(in)}, nil
	case "settings":
		return settings(in)
	}
	return nil, fmt.Errorf("table %s: no such experiment; varve run --list names them, and there are verdict, v1, criteria, ranking, best, machine, coverage, settings and peers:ID", name)
}

// Diff returns the lines of a text that another does not have, or not as often,
// after "-", and those that only the other has after "+".
func Diff(before, after string) string { return only("-", before, after) + only("+", after, before) }

func only(sign, text, other string) string {
	have := map[string]int{}
	for line := range strings.SplitSeq(other, "\n") {
		have[line]++
	}
	var out strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if have[line]--; have[line] < 0 {
			out.WriteString(sign + line + "\n")
		}
	}
	return out.String()
}
