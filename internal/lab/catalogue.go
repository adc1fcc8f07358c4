package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/report"
)

// section is a group of experiments whose IDs begin with the same letter.
type section struct {
	title       string
	experiments []Experiment
}

// Experiment is a question, a plan of measurements that answer it, and the
// tables that show the answer.
type Experiment struct {
	ID        string // section and number, such as "A5"
	Title     string
	Question  string
	Published string        // what others measured, on their machines; "" for nothing
	Views     []report.View // of the experiment's own lines
	Layouts   []string      // to measure if none are requested

	// Changes reports that the experiment modifies its data sets, so it gets
	// copies.
	Changes bool

	// Own reports that the experiment needs no attributes of the base profile,
	// so it can also run on the user's own source.
	Own bool

	Plan func(l *Lab) ([]Variant, error) // fails when the options do not fit
	core map[string]string               // values of keys in the core set; nil: no variant
}

// registered are the plans of experiments with large dependencies, such as the
// service. Their packages register them.
var registered = map[string]func(l *Lab) ([]Variant, error){}

// Register sets the plan of an experiment in the catalogue. It is for init
// functions.
func Register(id string, plan func(l *Lab) ([]Variant, error)) { registered[id] = plan }

func registeredPlan(id string) func(l *Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		if plan := registered[id]; plan != nil {
			return plan(l)
		}
		return nil, fmt.Errorf("%s is not linked into this program: it needs import _ %q", id, "github.com/varvedb/varve/internal/lab/network")
	}
}

// Core reports whether a variant belongs to the core set, which go test
// -bench=. runs: it is small enough to be repeated and read. For nil it reports
// whether the experiment has any such variant.
func (e *Experiment) Core(v *Variant) bool {
	return e.core != nil && (v == nil || v.Keys.of(e.core))
}

// All returns the catalogue in order.
func All() (list []Experiment) {
	for _, s := range sections {
		for _, e := range s.experiments {
			if e.Plan != nil { // the machine has none: it is looked at before each other one
				list = append(list, e)
			}
		}
	}
	return list
}

// Sections returns the sections of a report.
func Sections() (list []report.Section) {
	for _, s := range sections {
		of := report.Section{Title: s.title}
		for _, e := range s.experiments {
			of.Experiments = append(of.Experiments, e.Report())
		}
		list = append(list, of)
	}
	return list
}

// Report returns an experiment's part of a report, whose tables show only its
// results.
func (e Experiment) Report() report.Experiment {
	x := report.Experiment{ID: e.ID, Title: e.Title, Question: e.Question, Published: e.Published}
	for _, v := range e.Views {
		v.Filter = strings.TrimSpace("experiment:" + e.ID + " " + v.Filter)
		x.Views = append(x.Views, v)
	}
	return x
}

// Find returns the experiments with the given IDs or sections, in the order of
// the catalogue; without ids it returns all.
func Find(ids []string) ([]Experiment, error) {
	all := All()
	if len(ids) == 0 {
		return all, nil
	}
	named := func(e Experiment, id string) bool {
		return strings.EqualFold(e.ID, id) || strings.EqualFold(e.ID[:1], id)
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(e Experiment) bool { return named(e, id) }) {
			return nil, fmt.Errorf("unknown experiment %q; varve run --list names them", strings.ToUpper(id))
		}
	}
	return slices.DeleteFunc(all, func(e Experiment) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return named(e, id) })
	}), nil
}

// FindOwn returns the experiments of Find that can run on the user's source. It
// is an error to name one by its ID that cannot.
func FindOwn(ids []string) ([]Experiment, error) {
	found, err := Find(ids)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		if !e.Own && slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(id, e.ID) }) {
			return nil, fmt.Errorf("%s generates its own data; leave --source out", e.ID)
		}
	}
	own := slices.DeleteFunc(found, func(e Experiment) bool { return !e.Own })
	if len(own) == 0 {
		return nil, fmt.Errorf("all of %s generate their own data; leave --source out", strings.Join(ids, ", "))
	}
	return own, nil
}

// Variants returns the variants of an experiment on an engine. Variants on the
// user's source are planned only after it is prepared (Lab.Plan).
func (e Experiment) Variants(o Options, engine bench.Engine) ([]Variant, error) {
	if o.Source != "" {
		return nil, ErrSkip
	}
	return (&Lab{Options: o, Engine: engine, of: &e}).chosen(e)
}
