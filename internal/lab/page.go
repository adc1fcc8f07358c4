package lab

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// pageParam is the parameter of engines whose pages can be chosen.
const pageParam = "page_size"

// leastBudget is what a process of every engine can work with.
const leastBudget = 128 << 20

// pageSizes measures loading, reads and commits with pages of each size: of data that fit into
// memory twice, and of which it holds a tenth. Of events it measures a read and appends.
func pageSizes(l *Lab) (list []Variant, _ error) {
	linked, _ := driver.Lookup(l.Engine.Name)
	sizes := l.enrolments()
	data := sizes[len(sizes)-1]
	for _, layout := range l.layouts() {
		for _, kib := range []int{4, 8, 16, 32} {
			page := itoa(kib << 10)
			if layout != enrolment.Layout {
				for _, part := range []float64{2, 0.1} {
					c := l.onBase(layout, "page", page, "memory", ftoa(part))
					list = append(list, Variant{"PageSize", c, func(ctx context.Context, r *Record) error { return l.paged(ctx, layout, page, part, r) }})
				}
				continue
			}
			d := data.Dataset(l.Engine)
			d.Engine.Params = map[string]string{pageParam: page}
			for _, w := range enrolment.Workloads(data) {
				if w.Group == "Stream" || w.Group == "AppendConditional" && w.Value == "1" {
					list = append(list, l.enrolment("PageSize", d, data, w, "page", page, "op", w.Group))
				}
			}
		}
	}
	for i, v := range list {
		if linked.Params[pageParam] == "" || l.Engine.Server != "" {
			list[i] = Variant{v.Name, v.Keys, func(context.Context, *Record) error {
				return fmt.Errorf("%w: the size of this engine's pages cannot be chosen", ErrSkip)
			}}
		}
	}
	return list, nil
}

// paged loads the base profile within a budget that is a part of what it will take, reads it and
// goes on with commits.
func (l *Lab) paged(ctx context.Context, layout, page string, part float64, r *Record) error {
	d, err := l.base(layout, l.Scale, productionBlock)
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
