package report

import "strings"

// Markdown writes tables one after the other, in the dialect of GitHub.
func Markdown(tables []Table) string {
	var b strings.Builder
	for i, t := range tables {
		if i > 0 {
			b.WriteByte('\n')
		}
		t.markdown(&b)
	}
	return b.String()
}

func (t *Table) markdown(b *strings.Builder) {
	if t.Caption != "" {
		b.WriteString(t.Caption + "\n\n")
	}
	if len(t.Columns) > 0 {
		t.grid(b)
	}
	for i, note := range t.Notes {
		if i == 0 && len(t.Columns) > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(note + "\n")
	}
}

func (t *Table) grid(b *strings.Builder) {
	lines := make([][]string, 0, len(t.Rows)+1)
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = escape(c.Head)
	}
	lines = append(lines, head)
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, c := range row {
			line[i] = escape(c.Text)
			if line[i] == "" {
				line[i] = "–"
			}
		}
		lines = append(lines, line)
	}
	for i, line := range lines {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString(t.rule())
		}
	}
}

// rule is the line below the head; figures are aligned to the right.
func (t *Table) rule() string {
	var b strings.Builder
	b.WriteByte('|')
	for _, c := range t.Columns {
		if c.Numeric {
			b.WriteString("---:|")
		} else {
			b.WriteString("---|")
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}
