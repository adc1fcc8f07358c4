package experiment

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// inserts are the seed's Experiments 1 to 4: rows of one table.
func inserts() []Experiment {
	return []Experiment{
		{
			ID: "A1", Title: "Index cost in memory",
			Question: "What do no, 2 and 6 indexes cost when the disk costs nothing?",
			Earlier:  "1M rows, Python: 2.96x (single) and 3.59x (batch) with 2 indexes, 6.23x and 7.88x with 6; bi-temporal 2.1 times simple",
			Run:      insertPlan{size: 1_000_000, memory: true, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Single, row.Bulk}}.measure, phases: 12,
		},
		{
			ID: "A2", Title: "Index cost on file, 10,000 rows a commit",
			Question: "What do the indexes cost with large commits?",
			Earlier:  "10M rows: 11.8x over none with 2 indexes, 58.6x with 6",
			Run:      insertPlan{size: 10_000_000, perCommit: 10_000, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Bulk}}.measure, phases: 6,
		},
		{
			ID: "A3", Title: "Index cost on file, 500 rows a commit",
			Question: "What do the indexes cost with commits of a block's size, in bulk and row by row?",
			Earlier:  "10M rows: 41x over none with 2 indexes, 109x with 6; row by row (3b) 36x and 93x, so no difference between the two",
			Run:      insertPlan{size: 10_000_000, perCommit: 500, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Bulk, row.Single}}.measure, phases: 12,
		},
		{
			ID: "A4", Title: "Insert mode",
			Question: "Does it matter how 500 rows reach the engine, with the commits the same?",
			Earlier:  "1M rows, 6 indexes: at most 3 % between executemany and single inserts, in Python",
			Run:      insertPlan{size: 1_000_000, perCommit: 500, indexes: []int{6}, modes: row.Modes}.measure, phases: 8,
		},
	}
}

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

func (p insertPlan) measure(ctx context.Context, l *Lab) error {
	rows := l.scaled(p.size, minRows)
	for _, indexes := range p.indexes {
		for _, mode := range p.modes {
			c := l.config("durability", string(l.insertOptions(p).Durability), "store", place(p.memory), "indexes", itoa(indexes),
				"commit", itoa(p.perCommit), "mode", string(mode), "rows", itoa(rows))
			err := l.measure(ctx, "Insert", c, func(ctx context.Context, r *result.Record) error {
				return l.insert(ctx, p, row.Config{Indexes: indexes, Rows: rows, PerCommit: p.perCommit, Mode: mode, Seed: l.Seed, Limit: insertPhases * l.Phase}, r)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func place(memory bool) string {
	if memory {
		return "memory"
	}
	return "file"
}

// insertOptions: in memory nothing can be durable, so nothing is synced where
// the engine can leave it.
func (l *Lab) insertOptions(p insertPlan) *store.Options {
	o := l.storeOptions()
	if p.memory && l.supports(driver.Unsafe) == nil {
		o.Durability = driver.Unsafe
	}
	return o
}

// memoryDir is a file system in memory.
const memoryDir = "/dev/shm"

func (l *Lab) insert(ctx context.Context, p insertPlan, cfg row.Config, r *result.Record) error {
	parent := ""
	if p.memory {
		parent = memoryDir
	}
	return l.withDB(ctx, parent, l.insertOptions(p), func(string) error { return nil }, func(db *store.DB, _ string) error {
		res, err := row.Insert(ctx, db.Engine(), cfg)
		add(r, "commit", res)
		if err == nil && res.Rows < uint64(cfg.Rows) {
			r.Notes = append(r.Notes, fmt.Sprintf("ended after %d of %d rows, when the time was up", res.Rows, cfg.Rows))
		}
		return err
	})
}
