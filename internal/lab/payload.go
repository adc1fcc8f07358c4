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

// payloadBytes are written at scale 1 for each payload size: a part of the 13
// GB of the user's documents. A commit has fewer large payloads than small
// ones.
const (
	payloadBytes      = 10 << 30
	leastPayloadBytes = 10 << 20
	mostInCommit      = 5 << 20
)

// payloads measures where payloads are best kept, below the level of the store.
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
				list = append(list, Variant{Name: "Payload", Keys: c, Cost: Cost{Phases: 1.5}, Run: func(t *Trial, ctx context.Context) error {
					return t.WithNew(ctx, "", "", func() error { return t.payload(ctx, cfg) })
				}})
			}
		}
	}
	return list, nil
}

func (t *Trial) payload(ctx context.Context, cfg payload.Config) error {
	cfg.Path, cfg.Seed, cfg.Reads = t.file("payloads"), t.questionSeed(), t.Phase/2
	commits, reads, files, err := payload.Run(ctx, t.DB, cfg)
	t.Result(commits)
	t.Metrics = append(t.Metrics, reads.All().Metrics("read-")...)
	if err == nil {
		err = bench.FoldLog(ctx, t.DB)
	}
	if err != nil {
		return err
	}
	stats, err := t.DB.Engine().Stats(ctx)
	if size := stats.DatabaseBytes; size != nil {
		t.Put(float64(*size+files)/float64(commits.Entities), "B/ent")
	}
	return err
}

// The number of rows that A16 writes at scale 1, the minimum number, and the
// block sizes.
const (
	cappedRows      = 1_000_000
	leastCappedRows = 20_000
)

var caps = []int{100, 500, 1_000, 2_500, 5_000, 10_000}

// capped measures commits of the same rows in blocks of different sizes.
func capped(l *Lab) ([]Variant, error) {
	rows := l.Scaled(cappedRows, leastCappedRows)
	return across(l.LayoutsOr(), caps, func(layout string, most int) Variant {
		v := l.operation("Capped", layout, func(d *bench.Dataset, cp *bench.Copy) (measured, error) {
			gen := d.Gen.Next(rows / d.Profile.Rows())
			gen.PerBlock = most / d.Profile.Rows()
			return l.commits(d, cp, bench.CommitConfig{Blocks: bench.Blocks(d.Profile, gen), Config: pace.Config{N: int64(rows)}})
		}, "cap", itoa(most))
		v.Phases, v.Rows, v.Each = 0, float64(rows), nil // its blocks end
		return v
	})
}

// pageParam is the parameter for the page size, on engines that have one.
const pageParam = "page_size"

// leastBudget is enough for a process of every engine.
const leastBudget = 256 << 20

// pageSizes measures loading, reads and commits for each page size: with data
// that fit into memory twice, and with data ten times as large as memory.
func pageSizes(l *Lab) (list []Variant, _ error) {
	linked, _ := driver.Lookup(l.Engine.Name)
	for _, layout := range l.LayoutsOr() {
		for _, kib := range []int{4, 8, 16, 32} {
			page := itoa(kib << 10)
			for _, part := range []float64{2, 0.1} {
				c := l.OnBase(layout, l.Scale, "page", page, "memory", Ftoa(part))
				list = append(list, Variant{Name: "PageSize", Keys: c, Cost: Cost{Phases: 2, Rows: BaseCost(l.Scale, 0, 1).Rows}, Run: func(t *Trial, ctx context.Context) error {
					if linked.Params[pageParam] == "" || l.Engine.Server != "" {
						return fmt.Errorf("%w: the size of this engine's pages cannot be chosen", ErrSkip)
					}
					return t.paged(ctx, page, part)
				}})
			}
		}
	}
	return list, nil
}

// paged loads the base profile within a memory budget that is a fraction of its
// size, reads it and continues with commits.
func (t *Trial) paged(ctx context.Context, page string, part float64) error {
	d, err := t.base()
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
		t.Note("the budget is the least that a process works with, which is more than its part of the data")
	}
	if err := t.setMemory(budget); err != nil {
		return err
	}
	t.Store.Params = map[string]string{pageParam: page}
	return t.withLoaded(ctx, func(ready bench.Ready) error {
		rows := ready.Counts.Rows()
		t.Put(float64(rows)/ready.Seconds, "load-rows/s")
		if err := t.size(ctx, int(rows), "B/row"); err != nil {
			return err
		}
		return t.readsThenWrites(ctx, []string{mix.A})
	})
}
