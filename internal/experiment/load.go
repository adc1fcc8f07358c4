package experiment

import (
	"context"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
)

func loading() []Experiment {
	return []Experiment{{
		ID: "B1", Title: "Loading the base profile", Layouts: []string{"arkiv", "compact"},
		Question: "How long does it take to load the base profile, its indexes made afterwards, and how large is it then?",
		Earlier:  "Planned: 13 GB at 1x, 27, 67 and 133 GB at 2x, 5x and 10x",
		Run: func(ctx context.Context, l *Lab) error {
			return variants[float64]{
				name: "Load", layouts: l.layouts("arkiv", "compact"), values: l.growthScales(),
				config: func(layout string, scale float64) result.Config { return l.onBase(layout).With("scale", ftoa(scale)) },
				run:    l.load,
			}.measure(ctx, l)
		},
	}}
}

func (l *Lab) load(ctx context.Context, layout string, scale float64, r *result.Record) error {
	m, err := l.mendoza(layout, mendozaOptions{scale: scale})
	if err != nil {
		return err
	}
	return l.withStore(ctx, "", layout, l.storeOptions(), r, func(ctx context.Context, db *store.DB, ents *store.Entities) error {
		ready, err := m.Fill(ctx, ents)
		if err != nil {
			return err
		}
		put(r, ready.Seconds, "load-s")
		put(r, float64(ready.Counts.Rows())/ready.Seconds, "rows/s")
		return sizes(ctx, db, int(ready.Counts.Rows()), "B/row", r)
	})
}
