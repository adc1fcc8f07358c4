package report

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/varvedb/varve/internal/verdict"
)

// A place for tables begins with <!-- table:NAME --> and ends with
// <!-- /table:NAME -->, each on a line of its own. Names are the ids of
// experiments, and those of overviews.
var begin = regexp.MustCompile(`(?m)^<!-- table:([^ ]+) -->\n`)

func end(name string) string { return "<!-- /table:" + name + " -->" }

// RenderMarkdown puts the tables into their places in a document and leaves the
// rest as it is. It fails for a place that does not end, and for a name that
// stands for nothing.
func RenderMarkdown(document string, in *Input) (string, error) {
	var b strings.Builder
	rest := document
	for {
		at := begin.FindStringSubmatchIndex(rest)
		if at == nil {
			b.WriteString(rest)
			return b.String(), nil
		}
		name := rest[at[2]:at[3]]
		b.WriteString(rest[:at[1]])
		rest = rest[at[1]:]
		old, _, ok := strings.Cut(rest, end(name))
		if !ok || begin.MatchString(old) {
			return "", fmt.Errorf("table %s: no %s after it", name, end(name))
		}
		tables, err := tablesOf(in, name)
		if err != nil {
			return "", err
		}
		b.WriteString("\n" + Markdown(tables) + "\n")
		rest = rest[len(old):]
	}
}

// overviews are the tables that are not of one experiment.
var overviews = map[string]func(*Input) []Table{
	"verdict": func(in *Input) []Table {
		r := verdict.Evaluate(in.Results)
		t := Table{Caption: r.Sentence}
		if text := r.Excluded(); text != "" {
			t.Notes = []string{text + "."}
		}
		return []Table{t}
	},
	"tree": func(in *Input) []Table {
		r := verdict.Evaluate(in.Results)
		return []Table{walkTable(&r)}
	},
	"v1": func(in *Input) []Table {
		r := verdict.Evaluate(in.Results)
		return []Table{decisionTable(&r)}
	},
	"criteria": func(in *Input) []Table {
		r := verdict.Evaluate(in.Results)
		var tables []Table
		for _, w := range r.Walks {
			tables = append(tables, criteriaTable(&r, w.Layout))
		}
		return tables
	},
	"matrix": matrices,
	"settings": func(in *Input) []Table {
		list, err := in.manifests()
		if err != nil {
			return []Table{{Notes: []string{err.Error()}}}
		}
		return settingsTables(list, in.engines())
	},
}

func tablesOf(in *Input, name string) ([]Table, error) {
	if of, ok := overviews[name]; ok {
		return of(in), nil
	}
	for _, id := range in.ids() {
		if id == name {
			return Tables(in, id), nil
		}
	}
	return nil, fmt.Errorf("table %s: no such experiment; varve run --list names them, and there are verdict, tree, v1, criteria, matrix and settings", name)
}
