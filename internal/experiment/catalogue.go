package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Experiment is a question with the way to answer it.
type Experiment struct {
	ID       string   `json:"id"` // section and number, such as "A5"
	Title    string   `json:"title"`
	Question string   `json:"question"`
	Earlier  string   `json:"earlier"` // what the user's documents report, with its machine's figures
	Layouts  []string `json:"layouts,omitempty"`
	Ordered  bool     `json:"ordered,omitempty"` // its variants are steps of one course, and keep their order

	// Changes tells that it changes the data sets that it works on. Where they are
	// used in place, those that only read come before it.
	Changes bool `json:"-"`

	// Run measures on the lab's engine, by Lab.measure alone: what is measured opens
	// what it needs itself, and may begin when Run has returned. An error ends only
	// the experiment.
	Run func(ctx context.Context, l *Lab) error `json:"-"`

	phases int // timed phases of a layout; 0 means manyPhases
}

// Sections of the catalogue, by the first letter of an ID.
var Sections = map[byte]string{
	'A': "What a commit costs",
	'B': "Loading",
	'C': "Reads",
	'D': "Sustained writes, checkpoints, and reads beside writes",
	'E': "The data centre, every answer known",
	'F': "Event store",
	'G': "Permissions",
	'H': "Entity service",
	'Q': "A first look",
}

// All returns the catalogue in order.
func All() []Experiment {
	all := slices.Concat(first(), loading(), inserts(), commits(), drivers(), reads(), sustained(), combined(), dataCentre(), events(), permissions(), socialGraph(), services())
	slices.SortFunc(all, func(a, b Experiment) int {
		return cmp.Or(cmp.Compare(a.ID[0], b.ID[0]), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Find returns the experiments with the given IDs or sections, in the order of
// the catalogue; all for none.
func Find(ids []string) ([]Experiment, error) {
	all := All()
	if len(ids) == 0 {
		return all, nil
	}
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[strings.ToUpper(id)] = true
	}
	found := slices.DeleteFunc(all, func(e Experiment) bool { return !wanted[e.ID] && !wanted[e.ID[:1]] })
	for id := range wanted {
		if !slices.ContainsFunc(found, func(e Experiment) bool { return e.ID == id || e.ID[:1] == id }) {
			return nil, fmt.Errorf("unknown experiment %q; varve run --list names them", id)
		}
	}
	return found, nil
}

// ReadersFirst puts the experiments that change data sets behind those that only
// read, and keeps the order otherwise: used in place, a data set is built once for
// all readers, and again after each change.
func ReadersFirst(list []Experiment) {
	slices.SortStableFunc(list, func(a, b Experiment) int {
		switch {
		case a.Changes == b.Changes:
			return 0
		case b.Changes:
			return -1
		}
		return 1
	})
}

// What an experiment may take: besides its phases, which count twice for what is
// around them, workTime for each workScale of the largest size, since data sets are
// built and commits counted in proportion.
const (
	manyPhases = 60
	workTime   = 15 * time.Minute
	workScale  = 0.05
)

// Timeout returns the time after which a block of the experiment on one engine hangs
// and does not merely take long.
func (e Experiment) Timeout(o Options) time.Duration {
	layouts := cmp.Or(len(o.Layouts), len(e.Layouts), 1)
	phases := cmp.Or(e.phases, manyPhases) * max(len(o.Rates), len(o.Sizes), 1)
	size := slices.Max(append([]float64{workScale, o.Scale}, o.Sizes...)) / workScale
	work := time.Duration(size * float64(workTime))
	return time.Duration(layouts) * (work + time.Duration(2*phases)*o.Phase)
}
