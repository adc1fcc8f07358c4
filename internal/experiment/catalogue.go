package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Experiment is a question with the way to answer it.
type Experiment struct {
	ID       string   `json:"id"` // section and number, such as "A5"
	Title    string   `json:"title"`
	Question string   `json:"question"`
	Earlier  string   `json:"earlier"` // what the user's documents report, with its machine's figures
	Layouts  []string `json:"layouts,omitempty"`
	Ordered  bool     `json:"ordered,omitempty"` // its variants are steps of one course, and keep their order

	// Run measures on the lab's engine. It measures what it can: an error ends
	// only the experiment.
	Run func(ctx context.Context, l *Lab) error `json:"-"`
}

// Sections of the catalogue, by the first letter of an ID.
var Sections = map[byte]string{
	'A': "What a commit costs",
	'C': "Reads",
	'D': "Sustained writes, checkpoints, and reads beside writes",
	'E': "The data centre, every answer known",
	'G': "Permissions",
	'Q': "A first look",
}

// All returns the catalogue in order.
func All() []Experiment {
	all := slices.Concat(first(), inserts(), commits(), ablation(), drivers(), reads(), sustained(), combined(), dataCentre(), permissions(), socialGraph())
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
	var found []Experiment
	for _, e := range all {
		if wanted[e.ID] || wanted[e.ID[:1]] {
			found = append(found, e)
		}
	}
	for id := range wanted {
		if !slices.ContainsFunc(found, func(e Experiment) bool { return e.ID == id || e.ID[:1] == id }) {
			return nil, fmt.Errorf("unknown experiment %q; varve run --list names them", id)
		}
	}
	return found, nil
}
