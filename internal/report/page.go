package report

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	_ "embed" // the page's parts

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
)

// The parts of the page. The chart library is a copy of Apache ECharts' minified
// release, see assets/NOTICE-echarts.
var (
	//go:embed assets/page.html.tmpl
	pageTemplate string
	//go:embed assets/page.css
	pageStyle template.CSS
	//go:embed assets/page.js
	pageScript template.JS
	//go:embed assets/echarts.min.js
	chartLibrary template.JS
)

// page is what the template shows.
type page struct {
	Title    string
	Sentence string // what the page says, in one
	Facts    [][2]string
	Ranking  Table
	Warnings []string
	Engines  []string
	Sections []section

	Style           template.CSS
	Script, Library template.JS
}

// section is a part of the page that the navigation leads to.
type section struct {
	ID, Title string
	Link      string // in the navigation; empty is the title
	Short     bool   // is in the short version for paper
	Walks     []verdict.Walk
	Commands  []string
	Blocks    []block
}

// block is an experiment, or what else has a heading of its own.
type block struct {
	ID, Title         string
	Question, Earlier string
	Answer            string // what follows for what the documents found
	Settings          string // that all its figures are of
	Charts            []Chart
	Tables            []Table
	Notes             []string
	Remarks           []string // of single runs
	Missing           bool
	Long              bool // is not in the short version
}

// WriteHTML writes the page. It needs no network and no other file.
func WriteHTML(w io.Writer, in *Input) error {
	p, err := newPage(in)
	if err == nil {
		err = p.write(w)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (p *page) write(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"terms": explainer()}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

func newPage(in *Input) (*page, error) {
	evaluation, rank := in.evaluation(), newRanking(in)
	p := &page{
		Title: in.Title, Sentence: evaluation.Sentence, Ranking: rank.Table, Warnings: in.Results.Warnings, Engines: in.engines(),
		Style: pageStyle, Script: pageScript, Library: chartLibrary,
	}
	manifests, err := in.manifests()
	if err != nil {
		return nil, err
	}
	p.Facts = facts(in, manifests, rank)
	read, err := settings(in)
	if err != nil {
		return nil, err
	}
	p.Sections = append(p.Sections, verdictSection(evaluation))
	for _, id := range in.ids() {
		p.add(in, id)
	}
	p.Sections = append(p.Sections,
		section{ID: "settings", Title: "Machine and settings", Link: "Settings", Blocks: []block{{ID: "manifests", Title: "As read back", Tables: read}}},
		errorSection(in))
	return p, nil
}

// Charts are the drawings of all charts by their id, for the page's script.
func (p *page) Charts() map[string][]Variant {
	charts := map[string][]Variant{}
	for _, s := range p.Sections {
		for _, b := range s.Blocks {
			for _, c := range b.Charts {
				charts[c.ID] = c.Variants
			}
		}
	}
	return charts
}

// baseEntities are those of scale 1.
const baseEntities = 800_000

// facts are what has to be known before any figure: where, how much, when.
func facts(in *Input, manifests []bench.Manifest, rank *ranking) [][2]string {
	var where, sizes []string
	for _, row := range host(manifests).Rows {
		where = append(where, row[1].Text)
	}
	slices.Sort(rank.scales)
	for _, scale := range rank.scales {
		sizes = append(sizes, fmt.Sprintf("scale %g (%s entities) in the ranking", scale, runs.Number(scale*baseEntities)))
	}
	list := [][2]string{
		{"Machine", joinWords("; ", where...)}, {"Size", strings.Join(sizes, ", ")},
		{"Runs", summarize(in)}, {"Figures", repeats(runs.Gather(in.Results.Records))},
	}
	return slices.DeleteFunc(list, func(fact [2]string) bool { return fact[1] == "" })
}

func verdictSection(r *verdict.Report) section {
	s := section{ID: "verdict", Title: "Verdict", Short: true, Walks: r.Walks}
	if len(r.Assessments) > 0 {
		s.Commands = r.Commands()
		s.Blocks = []block{
			{ID: "v1", Title: "Go or no-go for V1", Tables: []Table{decisionTable(r)}, Notes: nonempty(sentence(runs.Excluded(r.LeftOut)))},
			{ID: "criteria", Title: "Every criterion", Long: true, Tables: criteriaTables(r)},
		}
	}
	return s
}

// titles of sections of the catalogue, and what they are called in the navigation.
var titles = map[string][2]string{
	"A": {"What a commit costs", "Commits"}, "B": {"Loading", "Loading"}, "C": {"Reads", "Reads"},
	"D": {"Sustained writes, checkpoints, and reads beside writes", "Sustained load"}, "E": {"The data centre", "Data centre"},
	"F": {"Events", "Events"}, "G": {"Permissions", "Permissions"}, "H": {"Entity service and node", "Service and node"}, "Q": {"A first look", "First look"},
}

// add adds an experiment to the section of its letter.
func (p *page) add(in *Input, id string) {
	s := &p.Sections[len(p.Sections)-1]
	if anchor := "section-" + strings.ToLower(id[:1]); s.ID != anchor {
		title, ok := titles[id[:1]]
		if !ok {
			title[0] = "Experiments " + id[:1]
		}
		p.Sections = append(p.Sections, section{ID: anchor, Title: title[0], Link: title[1]})
		s = &p.Sections[len(p.Sections)-1]
	}
	e, x := in.entry(id), in.experiment(id)
	b := block{
		ID: strings.ToLower(id), Title: joinWords(" · ", id, e.Title), Question: e.Question, Earlier: e.Earlier,
		Charts: x.shown(), Notes: nonempty(append(x.endings(true), sentence(x.leftOut))...), Remarks: remarks(x.groups),
	}
	said := brief{in: in, x: &x}
	said.tables()
	b.Answer = strings.ReplaceAll(said.answer(), "**", "")
	tables := x.figures()
	if b.Missing = len(tables) == 0; b.Missing {
		tables = []Table{x.missing("")}
	} else if !x.apart {
		b.Settings = x.pivots[0].settings()
	}
	if peers := peersOn(in.Results.Peers, id); len(peers) > 0 {
		tables = append(tables, in.beside(id, peers))
	}
	var beside []string // what tables beside charts show
	for _, c := range b.Charts {
		for _, t := range c.Tables {
			beside = append(beside, t.Of)
		}
	}
	for _, t := range tables {
		t.Caption = cmp.Or(t.Caption, t.Of)
		if t.Of == "" || !slices.Contains(beside, t.Of) {
			b.Tables = append(b.Tables, t)
		}
	}
	s.Blocks = append(s.Blocks, b)
}

// remarks are the notes of records, with the first configuration where a note is not
// of all of them.
func remarks(groups []*runs.Group) []string {
	var notes []string
	of := map[string][]string{}
	for _, g := range groups {
		for _, r := range g.Records {
			for _, note := range r.Notes {
				notes, of[note] = runs.AppendNew(notes, note), runs.AppendNew(of[note], r.Config.String())
			}
		}
	}
	for i, note := range notes {
		if own := of[note]; len(own) < len(groups) {
			notes[i] = fmt.Sprintf("%s (%d of %d configurations): %s", own[0], len(own), len(groups), note)
		}
	}
	return notes
}

// failureID is where the page tells why the runs of a key failed.
func failureID(key string) string { return "failed-" + slug(key) }

// errorSection has the runs that did not end well: a crash is a result.
func errorSection(in *Input) section {
	t := Table{Caption: "Runs that did not end well.", Columns: heads("experiment", "configuration", "run", "error")}
	for _, g := range runs.Gather(in.Results.Records) {
		id := failureID(g.Key())
		for _, r := range g.Records {
			if r.Error != "" {
				row := names(r.Experiment, r.Config.String(), strconv.Itoa(r.Repeat+1), strings.Join(strings.Fields(r.Error), " "))
				row[0].ID, row[0].Engine, id = id, g.Get("engine"), ""
				t.Rows = append(t.Rows, row)
			}
		}
	}
	b := block{ID: "failed", Title: "Failed runs", Tables: []Table{t}}
	if len(t.Rows) == 0 {
		b.Tables, b.Notes = nil, []string{"All runs ended well."}
	}
	return section{ID: "errors", Title: "Errors", Blocks: []block{b}}
}

// summarize says what was run.
func summarize(in *Input) string {
	records := in.Results.Records
	if len(records) == 0 {
		return "The result set is empty."
	}
	first := slices.MinFunc(records, func(a, b result.Record) int { return a.Started.Compare(b.Started) }).Started
	last, failed := first, 0
	for _, r := range records {
		if end := r.Started.Add(r.Took); end.After(last) {
			last = end
		}
		if r.Error != "" {
			failed++
		}
	}
	const minute = "2006-01-02 15:04"
	return fmt.Sprintf("%s on %s; %d failed; from %s to %s UTC.", runs.Number(float64(len(records))), strings.Join(in.engines(), ", "),
		failed, first.UTC().Format(minute), last.UTC().Format(minute))
}

// Style colours a cell: the page mixes good and bad by this share.
func (c Cell) Style() template.CSS {
	if c.Shade == nil {
		return ""
	}
	return template.CSS(fmt.Sprintf("--at:%.0f%%", 100**c.Shade))
}

// Lines are those below a cell's figure.
func (c Cell) Lines() []string {
	return nonempty(append([]string{c.Spread}, strings.Split(c.Detail, "; ")...)...)
}

// term is a word that readers may not know.
type term struct {
	Word, Means string
	stands      *regexp.Regexp
}

// termLines have a word each, the pattern of what it stands for, and what it means.
//
//go:embed assets/terms.txt
var termLines string

// explainer returns a function for the template that explains those terms in a text
// that stand in none before.
func explainer() func(of ...any) []term {
	var left []term
	for line := range strings.Lines(termLines) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		left = append(left, term{Word: f[0], Means: f[2], stands: regexp.MustCompile(`(^|[^\w-])(` + f[1] + `)($|[^\w-])`)})
	}
	return func(of ...any) []term {
		words := fmt.Sprintln(of...)
		stand := func(t term) bool { return t.stands.MatchString(words) }
		found := slices.DeleteFunc(slices.Clone(left), func(t term) bool { return !stand(t) })
		left = slices.DeleteFunc(left, stand)
		return found
	}
}

// String is what a chart says.
func (c Chart) String() string { return fmt.Sprintln(c.Caption, c.Tables) }
