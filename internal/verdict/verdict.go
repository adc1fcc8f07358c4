// Package verdict answers the questions that the measurements were made for: it
// walks the decision tree between engines, checks the targets for writes, reads
// and both together, says go or no-go, and ends in one sentence, all from the
// records of one revision in a result set. What these do not tell is unknown,
// with the command that would measure it.
package verdict

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/schemas"
)

// Outcome is the answer to a criterion.
type Outcome string

// Outcomes.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail"
	Unknown Outcome = "unknown"
)

// Parts of the evaluation, in their order.
const (
	PartTree      = "decision tree"
	PartWrites    = "write targets"
	PartChecklist = "checklist"
	PartReorg     = "reorg"
	PartCombined  = "reads beside writes"
	PartV1        = "V1"
)

// Criterion is a figure that is wanted and what was measured of it.
type Criterion struct {
	Part string  `json:"part"`
	Name string  `json:"name"`
	Op   string  `json:"op"` // "<", ">" or "≥": how the figure has to be to what is wanted
	Want float64 `json:"want"`
	Unit string  `json:"unit"` // of Want and Got

	At      float64 `json:"at,omitempty"`      // scale at which the figure is wanted; 0: any
	Decides bool    `json:"decides,omitempty"` // an engine is not chosen without it

	Got         *float64 `json:"got,omitempty"` // nil: not measured
	Low         *float64 `json:"low,omitempty"` // of the interval of Got
	High        *float64 `json:"high,omitempty"`
	Repetitions int      `json:"repetitions,omitempty"` // that Got is the median of
	Margin      *float64 `json:"margin,omitempty"`      // above 1 is on the good side: Want/Got or Got/Want
	Verdict     Outcome  `json:"verdict"`

	// Extrapolated: Got is what a trend over smaller sizes gives, or was measured
	// at a smaller size than asked for.
	Extrapolated bool `json:"extrapolated,omitempty"`

	Scale   string `json:"scale,omitempty"`   // of the measurement
	Source  string `json:"source,omitempty"`  // key of its record
	Command string `json:"command,omitempty"` // what would measure it
	Note    string `json:"note,omitempty"`
}

// Assessment is everything about one engine with one layout.
type Assessment struct {
	Engine   string      `json:"engine"`
	Layout   string      `json:"layout"`
	Criteria []Criterion `json:"criteria"`
	V1       Decision    `json:"v1"`
	Meets    Outcome     `json:"meets"` // the criteria that decide
}

// Decision is the answer to a go/no-go question.
type Decision string

// Decisions.
const (
	Go        Decision = "go"
	NoGo      Decision = "no-go"
	Undecided Decision = "undecided"
)

// Step is an engine that the decision tree asks about.
type Step struct {
	Engine   string      `json:"engine"`
	Answer   Outcome     `json:"answer"`
	Criteria []Criterion `json:"criteria"`
}

// Walk is the way through the decision tree with one layout.
type Walk struct {
	Layout string `json:"layout"`
	Steps  []Step `json:"steps"`
	Leaf   string `json:"leaf"`             // what to do
	Engine string `json:"engine,omitempty"` // the engine chosen, if one is
}

// Report is the evaluation of a result set.
type Report struct {
	Sentence    string         `json:"sentence"`           // what to choose, or what to measure to know
	Revision    string         `json:"revision,omitempty"` // of the records judged
	LeftOut     []runs.LeftOut `json:"left_out,omitempty"`
	Walks       []Walk         `json:"walks"`       // one for each layout
	Assessments []Assessment   `json:"assessments"` // by layout, then in the tree's order of engines

	// Others are the revisions of experiments that were measured anew at another, whole.
	Others map[string]string `json:"other_revisions,omitempty"`
}

// tree is the engines that the decision tree tries, in its order, with what to do
// when one meets its criteria.
var tree = []struct{ engine, leaf string }{
	{"sqlite", "stay with SQLite"},
	{"libsql", "libSQL: the least migration"},
	{"postgres", "embedded Postgres: accept the operational overhead"},
	{"duckdb", "DuckDB: an unexpected win"},
}

const noLeaf = "revisit the architecture: sharding, asynchronous writes"

// Evaluate evaluates the records of a result set, those of an experiment at one revision.
func Evaluate(results *result.Results) Report {
	report := Report{Walks: []Walk{}, Assessments: []Assessment{}}
	judgeable := slices.DeleteFunc(slices.Clone(results.Records), func(r result.Record) bool { return !slices.Contains(judged, r.Experiment) })
	records, revision, others, leftOut := runs.EachOneRevision(judgeable, results.Manifests, false)
	report.Revision, report.Others, report.LeftOut = revision, others, leftOut
	noise := runs.Noise(records)
	groups := runs.Gather(records)
	for _, layout := range layouts(groups) {
		w := Walk{Layout: layout, Steps: []Step{}}
		for _, engine := range engines(groups) {
			p := newPair(groups, engine, layout, noise)
			a := p.assess()
			w.ask(&a)
			if len(p.groups) > 0 {
				report.Assessments = append(report.Assessments, a)
			}
		}
		w.Leaf = cmp.Or(w.Leaf, noLeaf)
		report.Walks = append(report.Walks, w)
	}
	report.Sentence = report.sentence()
	return report
}

// layouts returns those of the records. The seed's question is about its own layout, so
// that comes first; then those that keep history as it does, and the others.
func layouts(groups []*runs.Group) []string {
	list := runs.Distinct(runs.Where(groups, func(g *runs.Group) bool { return g.Get("layout") != "" }), "layout")
	place := func(layout string) int {
		return slices.Index([]bool{layout == "arkiv", schemas.KeepsHistory(layout), true}, true)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return list
}

// engines returns those of the tree, and after them others that were measured.
func engines(groups []*runs.Group) []string {
	var list []string
	for _, t := range tree {
		list = append(list, t.engine)
	}
	others := runs.Where(groups, func(g *runs.Group) bool { return !slices.Contains(append(list, ""), g.Get("engine")) })
	return append(list, runs.Distinct(others, "engine")...)
}

// ask asks the next engine, unless it is not of the tree or an earlier one has
// answered.
func (w *Walk) ask(a *Assessment) {
	i := len(w.Steps)
	if w.Leaf != "" || i == len(tree) {
		return
	}
	s := Step{Engine: a.Engine, Criteria: a.where(func(c *Criterion) bool { return c.Part == PartTree })}
	s.Answer = all(s.Criteria)
	w.Steps = append(w.Steps, s)
	switch s.Answer {
	case Pass:
		w.Leaf, w.Engine = tree[i].leaf, a.Engine
		if slices.ContainsFunc(s.Criteria, func(c Criterion) bool { return c.Extrapolated }) {
			w.Leaf += " (by extrapolation)"
		}
	case Unknown:
		w.Leaf = "not known: measure " + a.Engine + " first"
	}
}

func (a *Assessment) where(keep func(*Criterion) bool) []Criterion {
	return slices.DeleteFunc(slices.Clone(a.Criteria), func(c Criterion) bool { return !keep(&c) })
}

// decisive are the criteria that a choice rests on.
func (a *Assessment) decisive() []Criterion {
	return a.where(func(c *Criterion) bool { return c.Decides })
}

// all joins the answers to criteria that must all hold.
func all(criteria []Criterion) Outcome {
	outcome := Pass
	for _, c := range criteria {
		switch c.Verdict {
		case Fail:
			return Fail
		case Unknown:
			outcome = Unknown
		}
	}
	return outcome
}
