package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	_ "embed" // the page's parts

	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
)

// The parts of the page. The chart library is a copy of Apache ECharts' minified
// release, see assets/NOTICE-echarts.
var (
	//go:embed assets/page.html.tmpl
	pageTemplate string
	//go:embed assets/page.css
	pageStyle string
	//go:embed assets/page.js
	pageScript string
	//go:embed assets/echarts.min.js
	chartLibrary string
)

// page is what the template shows.
type page struct {
	Title    string
	Summary  string
	Warnings []string
	Engines  []string
	Sections []section

	Style, Script, Library template.HTML
	Charts                 template.JS
}

// section is a part of the page that the navigation leads to.
type section struct {
	ID, Title string
	Link      string // in the navigation; empty is the title
	Intro     string
	Walks     []verdict.Walk
	Commands  []string
	Blocks    []block
}

// block is an experiment, or what else has a heading of its own.
type block struct {
	ID, Title         string
	Question, Earlier string
	Settings          string // what its runs have in common
	Charts            []Chart
	Tables            []Table
	Notes             []string
	Remarks           []string // of single runs
	Missing           bool
}

// WriteHTML writes the page. It needs no network and no other file.
func WriteHTML(w io.Writer, in *Input) error {
	p, err := newPage(in)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p.Library = script(chartLibrary)
	return p.write(w)
}

func (p *page) write(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"shade": shadeStyle, "lines": detailLines}).Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// script is an element with code of ours or of the library.
func script(code string) template.HTML {
	return template.HTML("<script>\n" + code + "\n</script>")
}

func newPage(in *Input) (*page, error) {
	p := &page{
		Title: in.Title, Summary: summarize(in), Warnings: in.Results.Warnings, Engines: in.engines(),
		Style: template.HTML("<style>\n" + pageStyle + "\n</style>"), Script: script(pageScript),
	}
	evaluation := verdict.Evaluate(in.Results)
	overview, err := overviewSection(in)
	if err != nil {
		return nil, err
	}
	p.Sections = append(p.Sections, verdictSection(&evaluation), overview)
	for _, letter := range letters(in.ids()) {
		s, err := experimentSection(in, letter)
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
	}
	settings, err := settingsSection(in)
	if err != nil {
		return nil, err
	}
	p.Sections = append(p.Sections, settings, errorSection(in), readingSection())
	return p, p.collectCharts()
}

// collectCharts puts the drawings of all charts into one object by their ids.
func (p *page) collectCharts() error {
	charts := map[string][]Variant{}
	for _, s := range p.Sections {
		for _, b := range s.Blocks {
			for _, c := range b.Charts {
				if charts[c.ID] != nil {
					return fmt.Errorf("two charts %s", c.ID)
				}
				charts[c.ID] = c.Variants
			}
		}
	}
	text, err := json.Marshal(charts)
	p.Charts = template.JS(text) // json.Marshal escapes what could end the element
	return err
}

func verdictSection(r *verdict.Report) section {
	s := section{ID: "verdict", Title: "Verdict", Walks: r.Walks}
	s.Intro = r.Sentence
	if len(r.Assessments) == 0 {
		return s
	}
	tree := "The decision tree asks each engine in turn whether its commits stay below 500 ms (p99) at five times the base profile, with 6,000 rows a second sustained. " +
		"Figures marked as extrapolated were not measured at that size."
	v1 := block{ID: "v1", Title: "Go or no-go for V1", Tables: []Table{decisionTable(r)}, Notes: []string{tree}}
	if text := r.Excluded(); text != "" {
		v1.Notes = append(v1.Notes, text)
	}
	s.Blocks = append(s.Blocks, v1)
	criteria := block{ID: "criteria", Title: "Every criterion"}
	for _, w := range r.Walks {
		criteria.Tables = append(criteria.Tables, criteriaTable(r, w.Layout))
	}
	s.Blocks = append(s.Blocks, criteria)
	s.Commands = r.Commands()
	return s
}

// headlines are the figures of the matrix.
var headlines = []struct{ id, unit, caption string }{
	{"D1", "p99-ms", "Commit p99 under sustained load (D1), ms."},
	{"D1", "rows/s", "Most rows a second written (D1)."},
	{"D3", "p99-ms", "p99 of deleting and inserting the same keys (D3), ms."},
	{"D4", "ceiling-qps", "Ceiling of reads beside writes (D4), reads a second."},
	{"C1", "qps", "Most reads a second of any mix, reads alone (C1)."},
	{"A11", "B/ent", "Bytes an entity by number of indexes (A11)."},
}

// matrices are the headline figures by layout and engine.
func matrices(in *Input) []Table {
	var tables []Table
	for _, h := range headlines {
		groups := in.groups(h.id)
		if h.id == "D1" && h.unit == "p99-ms" {
			groups = runs.Where(groups, func(g *runs.Group) bool { return g.Get("rate") != "max" })
		}
		if t, ok := matrix(groups, runs.Measure{Unit: h.unit}, h.caption); ok {
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 {
		return []Table{{Notes: []string{"Nothing was measured over engines and layouts."}}}
	}
	return tables
}

func overviewSection(in *Input) (section, error) {
	s := section{ID: "matrix", Title: "Engines and layouts", Link: "Matrix",
		Intro: "The shade goes from the best (green) to the worst (red) of each table on a logarithmic scale. Of several settings the best is shown, and which it is."}
	b := block{ID: "matrix-tables", Title: "Headline figures", Tables: matrices(in)}
	s.Blocks = append(s.Blocks, b)
	onDisk := runs.Where(in.groups("D1"), func(g *runs.Group) bool { return g.Get("rate") != "max" && !isEnd(g) })
	if len(onDisk) == 0 {
		return s, nil
	}
	c, ok, err := sizes(onDisk)
	if ok {
		s.Blocks = append(s.Blocks, block{ID: "sizes", Title: "Size on disk", Charts: []Chart{c}})
	}
	return s, err
}

// titles of sections of the catalogue.
var titles = map[string]string{
	"A": "What a commit costs", "C": "Reads", "D": "Sustained writes, checkpoints, and reads beside writes", "E": "The data centre",
}

// links are the same in the navigation.
var links = map[string]string{"A": "Commits", "C": "Reads", "D": "Sustained load", "E": "Data centre"}

func letters(ids []string) []string {
	var list []string
	for _, id := range ids {
		list = appendNew(list, id[:1])
	}
	return list
}

func experimentSection(in *Input, letter string) (section, error) {
	s := section{ID: "section-" + strings.ToLower(letter), Title: titles[letter], Link: links[letter]}
	if s.Title == "" {
		s.Title = "Experiments " + letter
	}
	for _, id := range in.ids() {
		if id[:1] != letter {
			continue
		}
		b, err := experimentBlock(in, id)
		if err != nil {
			return s, fmt.Errorf("%s: %w", id, err)
		}
		s.Blocks = append(s.Blocks, b)
	}
	return s, nil
}

func experimentBlock(in *Input, id string) (block, error) {
	e := in.entry(id)
	b := block{ID: strings.ToLower(id), Title: joinWords(id, e.Title), Question: e.Question, Earlier: e.Earlier}
	var err error
	if b.Charts, err = figures(in, id); err != nil {
		return b, err
	}
	x := newExperiment(in, id, false)
	b.Settings = x.settings
	if len(x.tables) == 0 {
		b.Missing, b.Settings = true, ""
		b.Tables = []Table{missing(id, nil)}
		b.Tables[0].Notes[0] = strings.ReplaceAll(b.Tables[0].Notes[0], "`", "") // marks of Markdown
	}
	for _, t := range x.tables {
		if t.Caption == "" {
			t.Caption = t.Of
		}
		if !b.has(t.Of) {
			b.Tables = append(b.Tables, t)
		}
	}
	b.Notes = x.ends
	b.Remarks = remarks(in.groups(id))
	return b, nil
}

// remarks are the notes of records, with the configuration where a note is not
// of all of them.
func remarks(groups []*runs.Group) []string {
	of := map[string][]*runs.Group{}
	var order []string
	for _, g := range groups {
		for _, r := range g.Records {
			for _, note := range r.Notes {
				if !slices.Contains(of[note], g) {
					of[note] = append(of[note], g)
				}
				order = appendNew(order, note)
			}
		}
	}
	var list []string
	for _, note := range order {
		if own := of[note]; len(own) < len(groups) {
			which := own[0].Config.String()
			if len(own) > 1 {
				which += fmt.Sprintf(" and %d more", len(own)-1)
			}
			note = which + ": " + note
		}
		list = append(list, note)
	}
	return list
}

// has tells whether a table is beside one of the charts.
func (b *block) has(of string) bool {
	return slices.ContainsFunc(b.Charts, func(c Chart) bool {
		return slices.ContainsFunc(c.Tables, func(t Table) bool { return t.Of == of })
	})
}

func settingsSection(in *Input) (section, error) {
	list, err := in.manifests()
	if err != nil {
		return section{}, err
	}
	return section{ID: "settings", Title: "Machine and settings", Link: "Settings", Blocks: []block{
		{ID: "manifests", Title: "As read back", Tables: settingsTables(list, in.engines())},
	}}, nil
}

// errorSection has the runs that did not end well: a crash is a result.
func errorSection(in *Input) section {
	t := Table{Caption: "Runs that did not end well.", Columns: heads("experiment", "configuration", "run", "error")}
	for i := range in.Results.Records {
		r := &in.Results.Records[i]
		if r.Error != "" {
			t.Rows = append(t.Rows, names(r.Experiment, r.Config.String(), fmt.Sprint(r.Repeat+1), oneLine(r.Error)))
		}
	}
	b := block{ID: "failed", Title: "Failed runs", Tables: []Table{t}}
	if len(t.Rows) == 0 {
		b.Tables, b.Notes = nil, []string{"All runs ended well."}
	}
	return section{ID: "errors", Title: "Errors", Blocks: []block{b}}
}

func readingSection() section {
	return section{ID: "reading", Title: "How to read this", Blocks: []block{{ID: "words", Title: "Words and figures", Notes: []string{
		"Figures are medians over the repetitions of a configuration; intervals are of 95 % from order statistics, and with fewer than six runs the range is given instead. Small screens and paper leave them out.",
		"p-values are of the Mann–Whitney U test against the first engine; they need at least four runs a side.",
		"Latencies of open loops count from the moment an operation was due, so that waiting behind a stall is in them.",
		"Quantile curves and timelines are of the first repetition.",
		"Charts are drawn with Apache ECharts (Apache License 2.0, © The Apache Software Foundation), which is part of this file.",
	}}}}
}

// summarize says what the page is about.
func summarize(in *Input) string {
	records := in.Results.Records
	if len(records) == 0 {
		return "The result set is empty."
	}
	var first, last time.Time
	failed := 0
	var layouts []string
	for i := range records {
		r := &records[i]
		end := r.Started.Add(r.Took)
		if i == 0 || r.Started.Before(first) {
			first = r.Started
		}
		if end.After(last) {
			last = end
		}
		if r.Error != "" {
			failed++
		}
		if l := r.Config.Get("layout"); l != "" {
			layouts = appendNew(layouts, l)
		}
	}
	text := fmt.Sprintf("%s runs on %s with %d layouts", runs.Thousands(fmt.Sprint(len(records))), strings.Join(in.engines(), ", "), len(layouts))
	if failed > 0 {
		text += fmt.Sprintf(", %d of which failed", failed)
	}
	if !first.IsZero() {
		text += fmt.Sprintf("; measured from %s to %s UTC", first.UTC().Format("2006-01-02 15:04"), last.UTC().Format("2006-01-02 15:04"))
	}
	return text + "."
}

// shadeStyle colours a cell: the page mixes good and bad by this share.
func shadeStyle(c Cell) template.CSS {
	if c.Shade == nil {
		return ""
	}
	return template.CSS(fmt.Sprintf("--at:%.0f%%", 100**c.Shade))
}

// detailLines are the parts of a cell's detail.
func detailLines(detail string) []string { return strings.Split(detail, "; ") }
