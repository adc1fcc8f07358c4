// Package report shows what result files say: lines in the Go benchmark format become tables by
// projections of golang.org/x/perf/benchproc and pictures by gonum.org/v1/plot, and Markdown and
// one HTML page are two printers of these. The unit of figures is the sitting.
//
// The files from the top; each uses only those after it:
//
//   - print.go prints a Page (page.go), whose tables answer questions.go and the experiments of the caller.
//   - table.go makes them by comparisons of rows and settings (compare.go) and regressions
//     (fit.go), and picture.go draws.
//   - selection.go takes the lines of a view (view.go), as columns of ours and of others
//     (column.go): figures (figure.go), which know what was asked for (asked.go), and ratios
//     (ratio.go) to a reference (reference.go), from a Set (set.go).
package report

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Page has everything that is shown of a set.
type Page struct {
	Title     string
	Set, Date string   // the name of the results, and when and where they were measured
	Glance    *Table   // the table of the deciding figures; nil if none was measured
	Questions []Answer // the five that the lab is for
	Sections  []Section
	Sittings  *Table
	Excluded  []Excluded
	Others    []string // programs with published figures in the tables
	Warnings  []string
	Lines     int
}

// Section has the experiments whose IDs begin with the same letter.
type Section struct {
	Title       string
	Experiments []Experiment
	Answers     []Answer // with the measured results
	Missing     []string // titles of the other experiments
}

// Letter is the first letter of the IDs.
func (s Section) Letter() string { return s.Experiments[0].ID[:1] }

// Answer is an experiment with its results.
type Answer struct {
	Experiment
	Sentence string     `json:"sentence"`           // from package answer, at most two sentences, for the five questions
	Unjudged string     `json:"unjudged,omitempty"` // engines and layouts that the sentence leaves out, and why
	Tables   []*Table   `json:"tables"`
	Pictures []*Picture `json:"-"`
}

// Empty reports whether no figure was measured.
func (a *Answer) Empty() bool {
	return !slices.ContainsFunc(a.Tables, func(t *Table) bool { return !t.Empty() })
}

// Excluded is a reason why lines do not count, and their number.
type Excluded struct {
	Why         string
	Lines       int
	Experiments string
}

// NewPage makes the tables and pictures of a set: the five questions, then the
// sections of experiments.
func NewPage(s *Set, title string, sections []Section) (*Page, error) {
	glance, err := s.atAGlance()
	if err != nil {
		return nil, err
	}
	p := &Page{Title: title, Set: s.Name, Date: s.date(), Glance: glance, Warnings: s.Warnings, Lines: len(s.Lines), Sittings: s.sittings(), Excluded: s.excluded(), Others: s.describePeers()}
	for _, q := range questions {
		a, err := s.Answer(q)
		if err != nil {
			return nil, err
		}
		p.Questions = append(p.Questions, a)
	}
	for _, of := range sections {
		for _, x := range of.Experiments {
			a, err := s.Answer(x)
			if err != nil {
				return nil, err
			}
			if a.Empty() {
				of.Missing = append(of.Missing, x.ID+" "+x.Title)
			} else {
				of.Answers = append(of.Answers, a)
			}
		}
		p.Sections = append(p.Sections, of)
	}
	return p, nil
}

// atAGlance returns the table of the deciding figures, at the size with the
// most figures; of several such sizes at the largest.
func (s *Set) atAGlance() (best *Table, err error) {
	known := 0
	for _, scale := range slices.SortedFunc(slices.Values(s.Values("scale")), byNumber) {
		t, err := s.Table(s.glance(scale))
		if err != nil {
			return nil, err
		}
		n := 0
		t.each(func(c *Cell) {
			if c.Text != "–" {
				n++
			}
		})
		if n > 0 && n >= known {
			best, known = t, n
		}
	}
	return best, nil
}

// Answers returns the answers to the five questions and of all experiments.
func (p *Page) Answers() []Answer {
	all := slices.Clone(p.Questions)
	for _, section := range p.Sections {
		all = append(all, section.Answers...)
	}
	return all
}

// Check returns why the page must not be published: unreadable lines, or tables
// that mix settings.
func (p *Page) Check() error {
	var problems []error
	for _, w := range p.Warnings {
		problems = append(problems, errors.New(w))
	}
	for _, a := range p.Answers() {
		for _, t := range a.Tables {
			if a.ID != "M1" && strings.Contains(t.Note, "mixes ") { // M1 is of the machine, whatever ran
				problems = append(problems, fmt.Errorf("%s %s: a table mixes settings: %s", a.ID, t.Title, t.Note))
			}
		}
	}
	return errors.Join(problems...)
}

// Answer makes the tables and pictures of an experiment.
func (s *Set) Answer(x Experiment) (Answer, error) {
	a := Answer{Experiment: x}
	for _, v := range x.Views {
		t, err := s.Table(v)
		if err != nil {
			return a, fmt.Errorf("%s: %w", x.ID, err)
		}
		a.Tables = append(a.Tables, t)
	}
	if !a.Empty() {
		a.Tables = slices.DeleteFunc(a.Tables, (*Table).Empty)
	}
	for _, k := range x.Sketches {
		pic, err := s.Draw(k)
		if err != nil {
			return a, fmt.Errorf("%s: %w", x.ID, err)
		}
		if pic.SVG != nil {
			a.Pictures = append(a.Pictures, pic)
		}
	}
	return a, nil
}

// date describes when the lines were measured, and on how many hosts.
func (s *Set) date() string {
	var days []string
	for _, id := range sittingsOf(s.Lines) {
		if at, err := time.Parse("20060102T150405Z", id); err == nil {
			days = appendNew(days, at.Format("2 January 2006"))
		}
	}
	text := Plural(len(sittingsOf(s.Lines)), "sitting")
	if hosts := distinct(s.Lines, "host"); len(hosts) > 0 {
		text += " on " + Plural(len(hosts), "host")
	}
	if len(days) > 0 {
		text += ", " + strings.Join(slices.Compact([]string{days[0], days[len(days)-1]}), " to ")
	}
	return text
}

// sittings is a table of the hosts and times of the measurements.
func (s *Set) sittings() *Table {
	t := &Table{Heads: []string{"#", "sitting", "host", "kernel", "processor", "revision", "fsync, µs", "memory of an engine, MB", "experiments", "lines"}, Keys: 2}
	for i, id := range sittingsOf(s.Lines) {
		lines := s.Lines.where(func(l *Line) bool { return sittingOf(l) == id })
		row := []Cell{{Text: strconv.Itoa(i + 1)}, {Text: id}}
		for _, key := range []string{"host", "kernel", "cpu", "revision"} {
			row = append(row, Cell{Text: strings.Join(distinct(lines, key), ", ")})
		}
		for _, key := range []string{"fsync-us", "memory-mb"} {
			values := slices.SortedFunc(slices.Values(distinct(lines, key)), byNumber)
			if len(values) > 2 {
				values = []string{values[0] + "–" + values[len(values)-1]}
			}
			row = append(row, Cell{Text: strings.Join(values, ", ")})
		}
		row = append(row, Cell{Text: strings.Join(distinct(lines, "experiment"), " ")}, Cell{Text: Number(float64(len(lines)))})
		t.Rows = append(t.Rows, row)
	}
	return t
}

// excluded counts the excluded lines by reason.
func (s *Set) excluded() (list []Excluded) {
	for _, why := range distinct(s.Excluded, "excluded") {
		of := s.Excluded.with("excluded", why)
		list = append(list, Excluded{why, len(of), strings.Join(distinct(of, "experiment"), " ")})
	}
	return list
}

// describePeers describes the runs behind other programs' figures.
func (s *Set) describePeers() (list []string) {
	for _, p := range s.Peers {
		parts := []string{Key(p, "peer") + ": " + p.GetConfig("peer")}
		for _, key := range []string{"version", "server", "date", "command", "note"} {
			if v := p.GetConfig(key); v != "" {
				parts = append(parts, v)
			}
		}
		list = appendNew(list, strings.Join(parts, "; "))
	}
	return list
}

// HowToRead explains the notation in tables.
var HowToRead = []string{
	"In a table of engines or layouts the rows of a setting stand best first, by the column with ▾; a click on another head chooses that. “÷ 2” in the last column is half of the best rate, “× 2” twice the best time or size.",
	"A sitting is measured on one host without a pause. A figure is the median of the sittings' medians, in brackets with the smallest and the largest. Of one sitting the brackets have the range of its runs; “one run” has none. The column sittings has their number and hosts, and in brackets which they are; a figure of a row that has others says so itself.",
	"× is the ratio of a side to the reference, of its own sitting and the same setting: median, smallest and largest. It carries to other hosts when three sittings on two hosts have met it. The reference itself has its figure, over all hosts. A figure without × is of sittings without the reference, of a size or a count, or of what was delivered of a rate that was asked for.",
	"“~” stands before a ratio that is not told apart from 1, by a permutation test within the sittings. “?” stands before one of too few runs for that: it takes four of both in one sitting.",
	"K, M and G are thousands, millions and thousand millions. “–” was not measured in that setting.",
	"† marks a figure with a run before which the machine was not at rest: other programs or the hypervisor used the processor, or copying in memory took more than twice its shortest time on that host.",
	"Scale 1 is 800,000 entities in 20 million rows. Layout, durability and other settings that a table has in common stand below it.",
	"Latencies count from the moment an operation was due where a rate was asked for. late counts what began after it was due, given up what had not begun after 2 s, or at the end. It counts as at least that: “≥ 2 s”.",
	"“not busy” stands for a rate of a loop that spent more than 5 % of the time on something else than its operations: it is not the engine's.",
	"Columns “published” are figures that others have published, of other machines. Other programs without that word were measured beside ours.",
}
