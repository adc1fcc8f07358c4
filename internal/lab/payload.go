package lab

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/payload"
	"github.com/varvedb/varve/store/driver"
)

// payloadBytes are written at scale 1, of each size of payloads: some of the user's documents' 13
// GB. Of large payloads fewer are in a commit.
const (
	payloadBytes      = 10 << 30
	leastPayloadBytes = 10 << 20
	mostInCommit      = 5 << 20
)

// payloads measures where payloads are best kept, below the store.
func payloads(l *Lab) (list []Variant, _ error) {
	for _, content := range []string{"json", "random"} {
		for _, kb := range []int{1, 5, 50, 500} {
			for _, place := range []string{"row", "table", "zstd", "file"} {
				size := kb << 10
				cfg := payload.Config{
					Place: place, JSON: content == "json", Bytes: size, Entities: l.Scaled(payloadBytes, leastPayloadBytes) / size,
					PerCommit: min(perBlock, mostInCommit/size), Sync: l.Durability == driver.Durable, Limit: l.Phase,
				}
				c := l.KeysOf("durability", string(l.Durability), "content", content, "bytes", itoa(size), "kept", place)
				list = append(list, Variant{Name: "Payload", Keys: c, Cost: Cost{Phases: 1.5}, Run: func(ctx context.Context, r *Record) error {
					return l.WithNew(ctx, "", "", l.StoreOptions(), r, func(cp *bench.Copy) error { return l.payload(ctx, cp, cfg, r) })
				}})
			}
		}
	}
	return list, nil
}

func (l *Lab) payload(ctx context.Context, cp *bench.Copy, cfg payload.Config, r *Record) error {
	cfg.Path, cfg.Seed, cfg.Reads = besideOf(cp, "payloads"), l.fresh(), l.Phase/2
	commits, reads, beside, err := payload.Run(ctx, cp.DB, cfg)
	r.Result(commits)
	r.Metrics = append(r.Metrics, reads.All().Metrics("read-")...)
	if err == nil {
		err = bench.FoldLog(ctx, cp.DB)
	}
	if err != nil {
		return err
	}
	stats, err := cp.DB.Engine().Stats(ctx)
	if size := stats.DatabaseBytes; size != nil {
		r.Put(float64(*size+beside)/float64(commits.Entities), "B/ent")
	}
	return err
}

// The rows that A16 writes at scale 1, and at least; and how many a block may have.
const (
	cappedRows      = 1_000_000
	leastCappedRows = 20_000
)

var caps = []int{100, 500, 1_000, 2_500, 5_000, 10_000}

// capped measures commits of the same rows in blocks of different sizes.
func capped(l *Lab) (list []Variant, _ error) {
	rows := l.Scaled(cappedRows, leastCappedRows)
	for _, layout := range l.LayoutsOr() {
		for _, most := range caps {
			v := l.operation("Capped", layout, func(d *bench.Dataset, cp *bench.Copy) (workload, error) {
				gen := d.Gen.Next(rows / d.Profile.Rows())
				gen.PerBlock = most / d.Profile.Rows()
				return l.commits(d, cp, bench.CommitConfig{Blocks: bench.Blocks(d.Profile, gen), Config: pace.Config{N: int64(rows)}})
			}, "cap", itoa(most))
			v.Phases, v.Rows = 0, float64(rows)
			list = append(list, v)
		}
	}
	return list, nil
}

// pageParam is the parameter of engines whose pages can be chosen.
const pageParam = "page_size"

// leastBudget is enough for a process of every engine.
const leastBudget = 256 << 20

// pageSizes measures loading, reads and commits with pages of each size: with
// data that fit into memory twice, and with data ten times as large as memory.
func pageSizes(l *Lab) (list []Variant, _ error) {
	linked, _ := driver.Lookup(l.Engine.Name)
	for _, layout := range l.LayoutsOr() {
		for _, kib := range []int{4, 8, 16, 32} {
			page := itoa(kib << 10)
			for _, part := range []float64{2, 0.1} {
				c := l.OnBase(layout, l.Scale, "page", page, "memory", Ftoa(part))
				list = append(list, Variant{Name: "PageSize", Keys: c, Cost: Cost{Phases: 2, Rows: baseCost(l.Scale, 0, 1).Rows}, Run: func(ctx context.Context, r *Record) error {
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

// paged loads the base profile within a budget that is a part of its size,
// reads it and goes on with commits.
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
