package report

import (
	_ "embed" // templates and page.css
	"fmt"
	"html/template"
	"io"
	"strings"
	text "text/template"
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

// WriteText writes the tables of an experiment for a terminal, which are also Markdown.
func WriteText(w io.Writer, s *Set, x Experiment) error {
	a, err := s.Answer(x)
	if err != nil {
		return err
	}
	return WriteTables(w, a.Tables)
}

// WriteMarkdown writes a page. Pictures are linked by the name that link makes of theirs, unless that is "".
func WriteMarkdown(w io.Writer, p *Page, link func(*Picture) string) error {
	page, err := markdown.Clone()
	if err != nil {
		return err
	}
	return page.Funcs(text.FuncMap{"link": link}).Execute(w, p)
}

//go:embed page.md.tmpl
var markdownTemplate string

var markdown = text.Must(text.New("page").Funcs(text.FuncMap{
	"read": func() []string { return HowToRead },
	"join": strings.Join,
	"link": func(*Picture) string { return "" },
	"table": func(t *Table) string {
		var b strings.Builder
		writeTable(&b, t)
		return b.String()
	},
}).Parse(markdownTemplate))

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
	line := func(cell func(i int) string) {
		for i, width := range widths {
			if i < t.Keys {
				width = -width // to the left
			}
			fmt.Fprintf(b, "| %*s ", width, cell(i))
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
func WriteHTML(w io.Writer, p *Page) error { return page.Execute(w, p) }
