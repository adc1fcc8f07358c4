package report

import (
	"slices"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// Input is what a report is made of.
type Input struct {
	Title     string // of the page
	Results   *result.Results
	Catalogue []Entry // the experiments, in order; those without records are said to be missing
}

// Entry is an experiment of the catalogue.
type Entry struct {
	ID       string // such as "A5"
	Title    string
	Question string
	Earlier  string // what an earlier measurement found
}

// groups returns the records of an experiment by configuration.
func (in *Input) groups(id string) []*runs.Group {
	return runs.Of(runs.Gather(in.Results.Records), id)
}

// engines returns all engines of the result set.
func (in *Input) engines() []string { return enginesOf(runs.Gather(in.Results.Records)) }

// entry returns the catalogue's entry of an experiment, or one with no more than
// its id.
func (in *Input) entry(id string) Entry {
	i := slices.IndexFunc(in.Catalogue, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return Entry{ID: id}
	}
	return in.Catalogue[i]
}

// ids returns the experiments to show: those that can be rendered, and those of
// the catalogue and of the records besides.
func (in *Input) ids() []string {
	var ids []string
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, s := range specs {
		add(s.id)
	}
	for _, e := range in.Catalogue {
		add(e.ID)
	}
	for i := range in.Results.Records {
		add(in.Results.Records[i].Experiment)
	}
	slices.SortStableFunc(ids, compareIDs)
	return ids
}

// compareIDs sorts by section and then by number, A2 before A10.
func compareIDs(a, b string) int {
	if c := strings.Compare(a[:1], b[:1]); c != 0 {
		return c
	}
	if c := len(a) - len(b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}
