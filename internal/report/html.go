package report

import (
	_ "embed" // page.html.tmpl and page.css
	"html/template"
	"io"
)

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
