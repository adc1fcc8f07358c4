package experiment

import (
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/store/driver"
)

// insertPlan is rows of one table, as in the seed's Experiments 1 to 4.
type insertPlan struct {
	size      int // rows at scale 1
	perCommit int
	memory    bool
	indexes   []int
	modes     []row.Mode
}

// minRows is how many rows an insertion has at least; it ends early where they
// take longer than so many phases.
const (
	minRows      = 20_000
	insertPhases = 2
)

func (p insertPlan) variants(l *Lab) (list []variant, _ error) {
	o, parent, in := l.storeOptions(), "", "file"
	if p.memory {
		parent, in = memoryDir, "memory"
		if linked, _ := driver.Lookup(l.Engine.Name); slices.Contains(linked.Capabilities.Durabilities, driver.Unsafe) {
			o.Durability = driver.Unsafe // nothing can be durable: nothing is synced where the engine can leave it
		}
	}
	for _, indexes := range p.indexes {
		for _, mode := range p.modes {
			cfg := row.Config{Indexes: indexes, Rows: l.scaled(p.size, minRows), PerCommit: p.perCommit, Mode: mode, Seed: l.Seed, Limit: insertPhases * l.Phase}
			c := l.config("durability", string(o.Durability), "store", in, "indexes", itoa(indexes),
				"commit", itoa(p.perCommit), "mode", string(mode), "rows", itoa(cfg.Rows))
			list = append(list, variant{"Insert", c, func(ctx context.Context, r *result.Record) error {
				return l.withDB(ctx, parent, o, func(db *database) error { return insert(ctx, db, cfg, r) })
			}})
		}
	}
	return list, nil
}

// memoryDir is a file system in memory.
const memoryDir = "/dev/shm"

func insert(ctx context.Context, db *database, cfg row.Config, r *result.Record) error {
	res, err := row.Insert(ctx, db.DB, cfg)
	add(r, "commit", res)
	if err == nil && res.Rows < uint64(cfg.Rows) {
		r.Notes = append(r.Notes, fmt.Sprintf("ended after %d of %d rows, when the time was up", res.Rows, cfg.Rows))
	}
	return err
}
