// Package report shows a result set: as one HTML page that needs no network, and
// as the Markdown tables of EXPERIMENTS.md. Both are rendered from the same
// tables, so that they cannot disagree, and depend on nothing but the records:
// the same result set gives the same bytes.
package report

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
)

// Input is what a report is made of.
type Input struct {
	Title     string // of the page
	Results   *result.Results
	Catalogue []Entry // the experiments, in order; those without records are said to be missing

	// loose lets records into tables whose revision has no name, for the eyes of who
	// has just measured them.
	loose bool

	noise  map[string]runs.Floor // of experiments, when it was asked for
	judged *verdict.Report       // of all records, likewise
}

// twice returns how far apart what was measured twice is, by experiment, which is worked
// out once.
func (in *Input) twice() map[string]runs.Floor {
	if in.noise == nil {
		in.noise = runs.Noise(in.Results.Records)
	}
	return in.noise
}

// floor returns the noise of an experiment. What was measured twice in another says
// nothing of this one: what lies at the edge of its cache is noisier than what does not.
// Only of units of which it has no pair it is the largest of all.
func (in *Input) floor(experiment string) runs.Floor {
	floor := runs.Largest(in.twice())
	maps.Copy(floor, in.twice()[experiment])
	return floor
}

// evaluation returns what the records decide, which is worked out once.
func (in *Input) evaluation() *verdict.Report {
	if in.judged == nil {
		in.judged = new(verdict.Evaluate(in.Results))
	}
	return in.judged
}

// entry returns what the catalogue says of an experiment.
func (in *Input) entry(id string) Entry {
	if i := slices.IndexFunc(in.Catalogue, func(e Entry) bool { return e.ID == id }); i >= 0 {
		return in.Catalogue[i]
	}
	return Entry{ID: id}
}

// Entry is an experiment of the catalogue.
type Entry struct {
	ID       string // such as "A5"
	Title    string
	Question string
	Earlier  string // what an earlier measurement found
}

// of returns the records of experiments that may stand in one table, by configuration,
// and which were left out.
func (in *Input) of(ids ...string) (groups []*runs.Group, leftOut string) {
	kept, _, out := runs.OneRevision(in.records(ids), in.Results.Manifests, in.loose)
	return runs.Gather(kept), runs.Excluded(out)
}

// each returns those of experiments that are not compared with each other, which of them
// are of another revision than most, and what was left out.
func (in *Input) each(ids ...string) (groups []*runs.Group, others, leftOut string) {
	kept, _, revisions, out := runs.EachOneRevision(in.records(ids), in.Results.Manifests, in.loose)
	return runs.Gather(kept), runs.Others(revisions), runs.Excluded(out)
}

func (in *Input) records(ids []string) []result.Record {
	return slices.DeleteFunc(slices.Clone(in.Results.Records), func(r result.Record) bool { return !slices.Contains(ids, r.Experiment) })
}

// sortEngines puts engines into their order.
func sortEngines(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(engine.Rank(a), engine.Rank(b)), cmp.Compare(a, b))
	})
}

// engines returns all engines of the result set.
func (in *Input) engines() []string { return enginesOf(runs.Gather(in.Results.Records)) }

// ids returns the experiments to show: those that can be rendered, and those of
// the catalogue and of the records besides.
func (in *Input) ids() []string {
	var ids []string
	for _, s := range specs {
		ids = append(ids, strings.Fields(s.ids)...)
	}
	for _, e := range in.Catalogue {
		ids = runs.AppendNew(ids, e.ID)
	}
	for _, r := range in.Results.Records {
		ids = runs.AppendNew(ids, r.Experiment)
	}
	slices.SortStableFunc(ids, natural)
	return slices.DeleteFunc(nonempty(ids...), func(id string) bool { return id == looks })
}

// number reads a value that is one; 0 for others.
func number(value string) float64 {
	v, _ := strconv.ParseFloat(value, 64)
	return v
}

var digits = regexp.MustCompile(`\d+(\.\d+)?`)

// natural compares words, and the numbers in them as numbers: A2 before A10.
func natural(a, b string) int {
	long := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(d string) string {
			return fmt.Sprintf("%024.6f", number(d))
		})
	}
	return strings.Compare(long(a), long(b))
}
