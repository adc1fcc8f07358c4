// Package verdict answers the questions that the measurements were made for: it
// walks the decision tree between engines, checks the targets for writes, reads
// and both together, says go or no-go, and ends in one sentence, all from the
// records of one revision in a result set. What these do not tell is unknown,
// with the command that would measure it.
package verdict

import (
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
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
	Unit string  `json:"unit"` // of Want, Failure and Got

	// Failure is where the documents speak of failure, when that is not where
	// the target ends.
	Failure *float64 `json:"failure,omitempty"`

	// At is the scale at which the figure is wanted; 0: any.
	At float64 `json:"at,omitempty"`

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
	Meets    Outcome     `json:"meets"` // the tree's criteria and the lower end of V1
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
	Sentence    string       `json:"sentence"`           // what to choose, or what to measure to know
	Revision    string       `json:"revision,omitempty"` // of the records judged
	LeftOut     []LeftOut    `json:"left_out,omitempty"`
	Walks       []Walk       `json:"walks"`       // one for each layout
	Assessments []Assessment `json:"assessments"` // by layout, then in the tree's order of engines
}

// Order is the order in which the decision tree tries engines.
var Order = []string{"sqlite", "libsql", "postgres", "duckdb"}

// Evaluate evaluates the records of a result set that are of one revision.
func Evaluate(results *result.Results) Report {
	report := Report{Walks: []Walk{}, Assessments: []Assessment{}}
	var records []result.Record
	records, report.Revision, report.LeftOut = oneRevision(results)
	groups := runs.Gather(records)
	for _, layout := range layouts(groups) {
		for _, engine := range engines(groups) {
			p := newPair(groups, engine, layout)
			if len(p.groups) == 0 {
				continue
			}
			report.Assessments = append(report.Assessments, p.assess())
		}
		report.Walks = append(report.Walks, walk(groups, layout))
	}
	report.Sentence = report.sentence()
	return report
}

// Find returns the assessment of an engine with a layout, or nil.
func (r *Report) Find(engine, layout string) *Assessment {
	for i := range r.Assessments {
		if a := &r.Assessments[i]; a.Engine == engine && a.Layout == layout {
			return a
		}
	}
	return nil
}

// judged are the experiments that criteria look at.
var judged = []string{"C1", "D1", "D3", "D4", "D5", "E3"}

func layouts(groups []*runs.Group) []string {
	found := runs.Distinct(runs.Where(groups, func(g *runs.Group) bool {
		return slices.Contains(judged, g.Experiment) && g.Get("layout") != ""
	}), "layout")
	// The seed's question is about its own layout, so that comes first.
	slices.SortStableFunc(found, func(a, b string) int { return rank(a) - rank(b) })
	return found
}

func rank(layout string) int {
	if layout == "arkiv" {
		return 0
	}
	return 1
}

// engines returns those of the tree, and after them others that were measured.
func engines(groups []*runs.Group) []string {
	list := slices.Clone(Order)
	for _, engine := range runs.Distinct(groups, "engine") {
		if engine != "" && !slices.Contains(list, engine) {
			list = append(list, engine)
		}
	}
	return list
}
