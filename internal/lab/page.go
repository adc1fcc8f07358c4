package lab

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store/driver"
)

// pageParam is the parameter of engines whose pages can be chosen.
const pageParam = "page_size"

// leastBudget is what a process of every engine can work with.
const leastBudget = 256 << 20

// pageSizes measures loading, reads and commits with pages of each size: of data that fit into
// memory twice, and of which it holds a tenth.
func pageSizes(l *Lab) (list []Variant, _ error) {
	linked, _ := driver.Lookup(l.Engine.Name)
	for _, layout := range l.LayoutsOr() {
		for _, kib := range []int{4, 8, 16, 32} {
			page := itoa(kib << 10)
			for _, part := range []float64{2, 0.1} {
				c := l.OnBase(layout, "page", page, "memory", Ftoa(part))
				list = append(list, Variant{"PageSize", c, func(ctx context.Context, r *Record) error {
					if linked.Params[pageParam] == "" || l.Engine.Server != "" {
						return fmt.Errorf("%w: the size of this engine's pages cannot be chosen", ErrSkip)
					}
					return l.paged(ctx, layout, page, part, r)
				}})
			}
		}
	}
	return list, nil
}

// paged loads the base profile within a budget that is a part of what it will take, reads it and
// goes on with commits.
func (l *Lab) paged(ctx context.Context, layout, page string, part float64, r *Record) error {
	d, err := l.Base(layout, l.Scale, ProductionBlock)
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
		r.Note("the budget is the least that a process works with, which is more than its part of the data")
	}
	at, err := l.within(budget, r)
	if err != nil {
		return err
	}
	if err := at.roomToLoad(l.Scale); err != nil {
		return err
	}
	o := at.StoreOptions()
	o.Params = map[string]string{pageParam: page}
	return at.WithNew(ctx, "", layout, o, r, func(cp *bench.Copy) error {
		ready, err := d.Fill(ctx, cp.Entities)
		if err != nil {
			return err
		}
		rows := ready.Counts.Rows()
		r.Put(float64(rows)/ready.Seconds, "load-rows/s")
		if err := r.sizes(ctx, cp.DB, int(rows), "B/row"); err != nil {
			return err
		}
		return at.readsThenWrites(ctx, d, cp, []string{mix.A}, r)
	})
}
