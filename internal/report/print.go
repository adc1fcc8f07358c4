package report

import (
	_ "embed" // page.html.tmpl and page.css
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteTables writes tables for a terminal, which are also Markdown.
func WriteTables(w io.Writer, tables []*Table) error {
	var b strings.Builder
	for _, t := range tables {
		writeTable(&b, t)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteText writes the tables of an experiment of the catalogue for a terminal, which are also Markdown.
func WriteText(w io.Writer, s *Set, id string) error {
	a, err := s.Answer(specs[slices.IndexFunc(specs, func(x Spec) bool { return x.ID == id })])
	if err != nil {
		return err
	}
	return WriteTables(w, a.Tables)
}

// WriteMarkdown writes a page. Pictures are linked by the name that link makes of theirs; none are
// shown when it is nil.
func WriteMarkdown(w io.Writer, p *Page, link func(*Picture) string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n## How to read this\n\n", p.Title)
	for _, line := range HowToRead {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	b.WriteString("\n## The five questions\n\n")
	for i := range p.Questions {
		q := &p.Questions[i]
		fmt.Fprintf(&b, "### %s. %s\n\n%s\n\n", q.ID, q.Title, q.Question)
		if q.Sentence != "" {
			fmt.Fprintf(&b, "**%s**\n\n", q.Sentence)
		}
		writeAnswer(&b, q, link)
	}
	for i := range p.Sections {
		s := &p.Sections[i]
		fmt.Fprintf(&b, "\n## %s. %s\n\n", s.Letter, s.Title)
		for j := range s.Answers {
			a := &s.Answers[j]
			fmt.Fprintf(&b, "### %s. %s\n\n%s", a.ID, a.Title, a.Question)
			if a.Found != "" {
				fmt.Fprintf(&b, " *Published:* %s.", a.Found)
			}
			b.WriteString("\n\n")
			writeAnswer(&b, a, link)
		}
		if len(s.Missing) > 0 {
			fmt.Fprintf(&b, "Not measured: %s.\n", strings.Join(s.Missing, ", "))
		}
	}
	b.WriteString("\n## Where and when\n\n")
	writeTable(&b, p.Sittings)
	b.WriteString("## Left out\n\n")
	for _, x := range p.Excluded {
		fmt.Fprintf(&b, "- %d lines of %s: %s\n", x.Lines, x.Experiments, x.Why)
	}
	b.WriteString("\n## Other programs\n\n")
	for _, o := range p.Others {
		fmt.Fprintf(&b, "- %s\n", o)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeAnswer(b *strings.Builder, a *Answer, link func(*Picture) string) {
	for _, t := range a.Tables {
		writeTable(b, t)
	}
	for _, pic := range a.Pictures {
		if link != nil {
			fmt.Fprintf(b, "![%s](%s)\n\n", pic.Title, link(pic))
		}
	}
}

// writeTable writes a table whose columns are as wide as their widest cell.
func writeTable(b *strings.Builder, t *Table) {
	if t.Title != "" || t.Unit != "" {
		fmt.Fprintf(b, "**%s**\n\n", strings.Trim(t.Title+", "+t.Unit, ", "))
	}
	if len(t.Rows) == 0 {
		fmt.Fprintf(b, "not measured\n\n")
		return
	}
	widths := make([]int, len(t.Heads))
	for i, h := range t.Heads {
		widths[i] = max(utf8.RuneCountInString(h), 3)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(escape(row[i].String())))
		}
	}
	line := func(text func(i int) string) {
		for i, width := range widths {
			if i < t.Keys {
				width = -width // to the left
			}
			fmt.Fprintf(b, "| %*s ", width, text(i))
		}
		b.WriteString("|\n")
	}
	line(func(i int) string { return t.Heads[i] })
	for i, width := range widths {
		end := ":"
		if i < t.Keys {
			end = "-"
		}
		b.WriteString("|-" + strings.Repeat("-", width) + end)
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(func(i int) string { return escape(row[i].String()) })
	}
	if t.Note != "" {
		fmt.Fprintf(b, "\n%s\n", t.Note)
	}
	b.WriteString("\n")
	if t.Under != nil {
		writeTable(b, t.Under)
	}
}

func escape(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var pageStyle string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"svg":   func(p *Picture) template.HTML { return template.HTML(p.SVG) }, //nolint:gosec // drawn by us; its texts are escaped there
	"style": func() template.CSS { return template.CSS(pageStyle) },
	"read":  func() []string { return HowToRead },
	"key":   func(t *Table, i int) bool { return i < t.Keys },
}).Parse(pageTemplate))

// WriteHTML writes a page as one file that needs no other.
func WriteHTML(w io.Writer, p *Page) error {
	return page.Execute(w, p)
}
