package experiment

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// events are section F: courses, students and enrolments, as go-crablet measures
// them. Each experiment is a group of the list of package enrolment.
func events() []Experiment {
	group := func(id, name, title, question, earlier string) Experiment {
		return Experiment{
			ID: id, Title: title, Question: question, Earlier: earlier,
			Run: func(ctx context.Context, l *Lab) error { return l.events(ctx, name) },
		}
	}
	list := []Experiment{
		group("F1", "Append", "Appends", "What do appends of 1 to 1,000 events cost?",
			"go-crablet on Postgres: 1.12, 1.47, 3.54 and 24.44 ms of 1, 10, 100 and 1,000 events with 35 in the store; with 61,000 550.41 of 1,000 appends, 5.78, 42.84 and 389.78"),
		group("F2", "AppendConcurrent", "Appends of several clients", "How many appends a second do clients make together?",
			"go-crablet with 61,000 events: 2,485, 3,535, 11,631 and 16,606 events a second of 1, 5, 10 and 20 clients"),
		group("F3", "AppendConditional", "Conditional appends", "How many appends a second does a store judge and take, each on the condition that a tag is new?",
			"go-crablet has AppendIf and did not measure it"),
		group("F4", "Decide", "Decisions", "What does a decision cost: a projection, and the append that it guards?", "asked, not measured"),
		group("F5", "Read", "Queries for events", "How long do queries take, read to their ends?",
			"go-crablet with 61,000 events: course by id 1.84 ms, courses by category 2.06, course or student 4.59, enrolments by grade 1.41"),
		group("F6", "ReadMemory", "Memory of a read", "By how much does memory grow while everything is read?", "asked, not measured"),
		group("F7", "Stream", "Subscription", "How long does it take to replay the events of one student?",
			"go-crablet: 0.51 ms with 35 events, 2.17 with 61,000"),
		group("F8", "Project", "Projections", "How long does a pass of one and of five projections take?",
			"go-crablet: 0.42 and 0.51 ms with 35 events, 1.18 and 2.34 with 61,000"),
	}
	for i := range 4 { // those that append
		list[i].Changes = true
	}
	return list
}

// manyEvents is the largest data set, of a lab's scale.
const manyEvents = 1_000_000

// eventLoad is a workload on a data set.
type eventLoad struct {
	data enrolment.Data
	enrolment.Workload
}

// eventLoads are those of a group.
func (l *Lab) eventLoads(group string) (loads []eventLoad, err error) {
	list := []enrolment.Data{enrolment.Tiny, enrolment.Small}
	if n := l.scaled(manyEvents, 0); n > enrolment.Small.Len() {
		many, err := enrolment.Parse(itoa(n))
		if err != nil {
			return nil, err
		}
		list = append(list, many)
	}
	for _, data := range list {
		for _, w := range enrolment.Workloads(data) {
			if w.Group == group {
				loads = append(loads, eventLoad{data, w})
			}
		}
	}
	return loads, nil
}

// events measures a group in each of the engine's layouts of events. Phases are
// short: there are many.
func (l *Lab) events(ctx context.Context, group string) error {
	loads, err := l.eventLoads(group)
	if err != nil {
		return err
	}
	linked, _ := driver.Lookup(l.Engine.Name)
	return variants[eventLoad]{
		name: "Event" + group, layouts: store.EventLayouts(linked.Info.Dialect), values: loads,
		config: func(layout string, v eventLoad) result.Config { return l.on(layout, v.data.Name, v.Key, v.Value) },
		run: func(ctx context.Context, layout string, v eventLoad, r *result.Record) error {
			return l.withDataset(ctx, v.data.Dataset(l.Engine, layout), l.storeOptions(), r, func(ctx context.Context, cp *bench.Copy) error {
				res, err := v.Run(ctx, cp, bench.For(l.Phase/2))
				add(r, "operation", res)
				return err
			})
		},
	}.measure(ctx, l)
}
