package report

import (
	_ "embed" // templates, page.css and page.js
	"fmt"
	"html/template"
	"io"
	"strings"
	text "text/template"
	"unicode/utf8"
)

// Width is the number of terminal columns for text.
const Width = 100

// Wrap breaks the lines of a text at Width, and leaves out empty ones.
// Continuation lines are indented.
func Wrap(text, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		at := len(line) - len(strings.TrimLeft(line, " "))
		b.WriteString(line[:at])
		for i, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case at+1+n > Width:
				b.WriteString("\n" + indent)
				at = len(indent)
			default:
				b.WriteString(" ")
				at++
			}
			b.WriteString(word)
			at += n
		}
		if strings.TrimSpace(line) != "" {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// WriteTables writes tables for a terminal.
func WriteTables(w io.Writer, tables []*Table) error {
	var b strings.Builder
	for _, t := range tables {
		for ; t != nil; t = t.Under {
			if caption := t.caption(); caption != "" {
				b.WriteString(caption + "\n")
			}
			writeRows(&b, t)
			b.WriteString(Wrap(t.Note, "") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes a page. Pictures are linked by the name that link
// returns; "" means no link.
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
		for ; t != nil; t = t.Under {
			if caption := t.caption(); caption != "" {
				b.WriteString("**" + caption + "**\n\n")
			}
			writeRows(&b, t)
			if t.Note != "" {
				b.WriteString("\n" + t.Note + "\n")
			}
			b.WriteString("\n")
		}
		return b.String()
	},
}).Parse(markdownTemplate))

// caption is the title of a table, with the unit if all columns share it.
func (t *Table) caption() string { return strings.Trim(t.Title+", "+t.Unit, ", ") }

// writeRows writes a table with aligned columns, which is readable in a
// terminal and is a table in Markdown.
func writeRows(b *strings.Builder, t *Table) {
	if len(t.Rows) == 0 {
		b.WriteString("not measured\n")
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
}

func escape(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"svg":    func(p *Picture) template.HTML { return template.HTML(p.SVG) }, //nolint:gosec // drawn by us; its texts are escaped there
	"style":  func() template.CSS { return template.CSS(pageStyle) },
	"read":   func() []string { return HowToRead },
	"key":    func(t *Table, i int) bool { return i < t.Keys },
	"script": func() template.JS { return template.JS(pageScript) }, //nolint:gosec // it is ours
	"better": func(t *Table, i int) int {
		if i -= t.Keys; i >= 0 && i < len(t.Better) {
			return t.Better[i]
		}
		return 0
	},
}).Parse(pageTemplate))

// WriteHTML writes a page as a single self-contained file.
func WriteHTML(w io.Writer, p *Page) error { return page.Execute(w, p) }
