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

// eventLoad is a workload on a data set.
type eventLoad struct {
	data enrolment.Data
	enrolment.Workload
}

// events measures a group of the list of package enrolment in each of the engine's
// layouts of events: courses, students and enrolments, as go-crablet measures them.
// Phases are short: there are many.
func events(group string) func(*Lab) ([]variant, error) {
	return func(l *Lab) ([]variant, error) {
		list := []enrolment.Data{enrolment.Tiny, enrolment.Small}
		if n := l.scaled(manyEvents, 0); n > enrolment.Small.Len() {
			many, err := enrolment.Parse(itoa(n))
			if err != nil {
				return nil, err
			}
			list = append(list, many)
		}
		var loads []eventLoad
		for _, data := range list {
			for _, w := range enrolment.Workloads(data) {
				if w.Group == group {
					loads = append(loads, eventLoad{data, w})
				}
			}
		}
		linked, _ := driver.Lookup(l.Engine.Name)
		return variants[eventLoad]{
			name: "Event" + group, layouts: store.EventLayouts(linked.Info.Dialect), values: loads,
			config: func(layout string, v eventLoad) result.Config { return l.on(layout, v.data.Name, v.Key, v.Value) },
			run: func(ctx context.Context, layout string, v eventLoad, r *result.Record) error {
				return l.withDataset(ctx, v.data.Dataset(l.Engine, layout), l.storeOptions(), r, func(cp *bench.Copy) error {
					res, err := v.Run(ctx, cp, bench.For(l.Phase/2))
					add(r, "operation", res)
					return err
				})
			},
		}.of(l), nil
	}
}
