package experiment

import (
	"context"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
)

func loads(l *Lab) ([]variant, error) { return l.grown("Load", l.load), nil }

func (l *Lab) load(ctx context.Context, layout string, scale float64, r *result.Record) error {
	m, err := l.mendoza(layout, mendozaOptions{scale: scale})
	if err != nil {
		return err
	}
	return l.withStore(ctx, "", layout, l.storeOptions(), r, func(db *database, ents *store.Entities) error {
		if err := db.probe(r); err != nil {
			return err
		}
		ready, err := m.Fill(ctx, ents)
		if err != nil {
			return err
		}
		put(r, ready.Seconds, "load-s")
		put(r, float64(ready.Counts.Rows())/ready.Seconds, "rows/s")
		return db.sizes(ctx, int(ready.Counts.Rows()), "B/row", r)
	})
}
