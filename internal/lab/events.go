package experiment

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// manyEvents is the largest data set, of a lab's scale.
const manyEvents = 1_000_000

// events measures a group of the list of package enrolment in each of the engine's
// layouts of events: courses, students and enrolments, as go-crablet measures them.
// Phases are short: there are many.
func events(group string) func(*Lab) ([]variant, error) {
	return func(l *Lab) (list []variant, _ error) {
		sizes := []enrolment.Data{enrolment.Tiny, enrolment.Small}
		if n := l.scaled(manyEvents, 0); n > enrolment.Small.Len() {
			many, err := enrolment.Parse(itoa(n))
			if err != nil {
				return nil, err
			}
			sizes = append(sizes, many)
		}
		linked, _ := driver.Lookup(l.Engine.Name)
		for _, layout := range store.EventLayouts(linked.Info.Dialect) {
			for _, data := range sizes {
				for _, w := range enrolment.Workloads(data) {
					if w.Group != group {
						continue
					}
					list = append(list, variant{"Event" + group, l.on(layout, data.Name, w.Key, w.Value), func(ctx context.Context, r *result.Record) error {
						return l.withDataset(ctx, data.Dataset(l.Engine, layout), l.storeOptions(), r, func(cp *bench.Copy) error {
							res, err := w.Run(ctx, cp, bench.For(l.Phase/2))
							add(r, "operation", res)
							return err
						})
					}})
				}
			}
		}
		return list, nil
	}
}
