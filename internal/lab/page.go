package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// pageParam is the parameter of engines whose pages can be chosen.
const pageParam = "page_size"

// leastBudget is what a process of every engine can work with.
const leastBudget = 128 << 20

// pageSizes measures loading, reads and commits with pages of each size: of data that fit into
// memory twice, and of which it holds a tenth.
func pageSizes(l *Lab) (list []Variant, _ error) {
	linked, _ := driver.Lookup(l.Engine.Name)
	chosen := func(run func(ctx context.Context, r *Record) error) func(ctx context.Context, r *Record) error {
		return func(ctx context.Context, r *Record) error {
			if linked.Params[pageParam] == "" || l.Engine.Server != "" {
				return fmt.Errorf("%w: the size of this engine's pages cannot be chosen", ErrSkip)
			}
			return run(ctx, r)
		}
	}
	for _, layout := range l.layouts() {
		for _, kib := range []int{4, 8, 16, 32} {
			page := itoa(kib << 10)
			if slices.Contains(store.EventLayouts(linked.Info.Dialect), layout) {
				events, err := l.pagedEvents(layout, page)
				if err != nil {
					return nil, err
				}
				events.run = chosen(events.run)
				list = append(list, events)
				continue
			}
			for _, part := range []float64{2, 0.1} {
				c := l.onBase(layout, "page", page, "memory", ftoa(part))
				list = append(list, Variant{"PageSize", c, chosen(func(ctx context.Context, r *Record) error { return l.paged(ctx, layout, page, part, r) })})
			}
		}
	}
	return list, nil
}

// paged loads the base profile within a budget that is a part of what it will take, reads it and
// goes on with commits.
func (l *Lab) paged(ctx context.Context, layout, page string, part float64, r *Record) error {
	d, err := l.mendoza(layout, l.Scale, productionBlock)
	if err != nil {
		return err
	}
	size, err := d.Size()
	if err != nil {
		return err
	}
	budget := int64(part * float64(size))
	if budget < leastBudget {
		budget = leastBudget
		r.note("the budget is the least that a process works with, which is more than its part of the data")
	}
	at, err := l.within(budget, r)
	if err != nil {
		return err
	}
	if err := at.roomToLoad(l.Scale); err != nil {
		return err
	}
	o := at.storeOptions()
	o.Params = map[string]string{pageParam: page}
	return at.withNew(ctx, "", o, r, func(cp *bench.Copy) (err error) {
		if cp.Entities, err = cp.DB.Entities(ctx, store.EntityOptions{Layout: layout}); err != nil {
			return err
		}
		ready, err := d.Fill(ctx, cp.Entities)
		if err != nil {
			return err
		}
		rows := ready.Counts.Rows()
		r.put(float64(rows)/ready.Seconds, "load-rows/s")
		if err := r.sizes(ctx, cp.DB, int(rows), "B/row"); err != nil {
			return err
		}
		return at.readsThenWrites(ctx, d, cp, []string{mix.A}, r)
	})
}

// pagedEvents reads and appends events.
func (l *Lab) pagedEvents(layout, page string) (Variant, error) {
	sizes, err := l.enrolments()
	if err != nil {
		return Variant{}, err
	}
	data, engine := sizes[len(sizes)-1], l.Engine
	engine.Params = map[string]string{pageParam: page}
	return Variant{"PageSize", l.on(layout, data.Name, "page", page), func(ctx context.Context, r *Record) error {
		return l.withDataset(ctx, data.Dataset(engine, layout), l.storeOptions(), r, func(cp *bench.Copy) error {
			for _, w := range enrolment.Workloads(data) {
				one := w.Key == "clients" && w.Value == "1"
				if w.Group != "Stream" && !(w.Group == "AppendConditional" && one) {
					continue
				}
				into := r
				if !one {
					into = new(Record) // what is sampled meanwhile is the appends' alone
				}
				err := l.phase(ctx, cp, temperature{fill: true}, into, func(ctx context.Context) (*pace.Outcome, error) {
					res, err := w.Run(ctx, cp, bench.For(l.Phase/2))
					if one {
						r.result(res)
					} else {
						r.Metrics = append(r.Metrics, res.Latency.Metrics("read-")...)
					}
					return nil, err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}}, nil
}
