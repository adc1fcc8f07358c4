package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/report"
)

// section is the experiments whose IDs begin with the same letter.
type section struct {
	title       string
	experiments []Experiment
}

// Experiment is a question, the way to answer it, and the tables that show the answer.
type Experiment struct {
	ID        string // section and number, such as "A5"
	Title     string
	Question  string
	Published string        // what others measured, on their machines; "" for nothing
	Views     []report.View // of the experiment's own lines
	Layouts   []string      // that it measures where none are asked for

	// Changes tells that it changes the data sets that it works on: it gets copies.
	Changes bool

	// Own tells that it asks nothing about attributes of the base profile, and so runs on a
	// source of the user's own too.
	Own bool

	Plan func(l *Lab) ([]Variant, error) // fails when the options do not fit
	core map[string]string               // values of keys in the core set; nil is none
}

// registered are the plans of experiments that bring much with them, such as the service.
var registered = map[string]func(l *Lab) ([]Variant, error){}

// Register gives an experiment of the catalogue its plan. It is for init functions.
func Register(id string, plan func(l *Lab) ([]Variant, error)) { registered[id] = plan }

func elsewhere(id string) func(l *Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		if plan := registered[id]; plan != nil {
			return plan(l)
		}
		return nil, fmt.Errorf("%s is not linked into this program: it needs import _ %q", id, "github.com/varvedb/varve/internal/lab/network")
	}
}

// Core reports whether a variant is of the core set, which is small enough to be repeated and read: what go test
// -bench=. measures; of nil, whether any is.
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

// Sections returns everything that a report shows.
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

// Report returns an experiment's part of a report: its tables have its lines
// alone.
func (e Experiment) Report() report.Experiment {
	x := report.Experiment{ID: e.ID, Title: e.Title, Question: e.Question, Published: e.Published}
	for _, v := range e.Views {
		v.Filter = strings.TrimSpace("experiment:" + e.ID + " " + v.Filter)
		x.Views = append(x.Views, v)
	}
	return x
}

// Find returns the experiments with the given IDs or sections, in the order of the catalogue; all for none.
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

// FindOwn returns the experiments of Find that run on a source of the user's.
// One that does not, and was asked for by its ID, is an error.
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

// Variants returns the variants of an experiment on an engine; variants on a
// source of the user's are planned once it is prepared (Lab.Plan).
func (e Experiment) Variants(o Options, engine bench.Engine) ([]Variant, error) {
	if o.Source != "" {
		return nil, ErrSkip
	}
	return (&Lab{Options: o, Engine: engine, of: &e}).chosen(e)
}
