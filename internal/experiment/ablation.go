package experiment

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/schemas"
)

// ablation is index by index, which the seed asks for and did not do.
func ablation() []Experiment {
	return []Experiment{
		{
			ID: "A11", Title: "Index by index, writes",
			Question: "What does each of the thirteen indexes add to a commit, in the seed's order?",
			Earlier:  "asked, not measured; whole sets: 2.1x in memory, 5x on file, nothing with payloads",
			Run: func(ctx context.Context, l *Lab) error {
				entities := l.scaled(100_000, minEntities)
				for _, layout := range l.layouts(schemas.AblationLayouts()...) {
					c := l.config("layout", layout, "profile", bench.Typical.Name, "durability", string(l.Durability), "entities", itoa(entities))
					err := l.measure(ctx, "Commit", c, func(ctx context.Context, r *result.Record) error {
						return l.commit(ctx, commitPlan{layout: layout, profile: bench.Typical, entities: entities, options: l.storeOptions()}, r)
					})
					if err != nil {
						return err
					}
				}
				return nil
			},
		},
		{
			ID: "A12", Title: "Index by index, reads",
			Question: "Which of the thirteen indexes do the read mixes need?",
			Earlier:  "asked, not measured",
			Run: func(ctx context.Context, l *Lab) error {
				return l.readMixes(ctx, readPlan{layouts: l.layouts(schemas.AblationLayouts()...), clients: []int{1}, short: true})
			},
		},
	}
}
