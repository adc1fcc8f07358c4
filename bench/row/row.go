// Package row measures plain inserts, as in Arkiv's Experiments 1 to 4: rows of
// one table of string attributes with some of its indexes, without a store.
package row

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Mode is how rows are passed to the engine.
type Mode string

// The modes.
const (
	Single Mode = "single" // a prepared INSERT of one row, again and again
	Batch  Mode = "batch"  // a prepared INSERT of batchRows rows
	Bulk   Mode = "bulk"   // the engine's fastest way, driver.Tx.Insert
)

// Modes are all modes.
var Modes = []Mode{Single, Batch, Bulk}

// batchRows is the number of rows in a statement of mode Batch.
const batchRows = 100

// The rows of an entity, and the entities of a block, in Arkiv's Experiment 3.
const (
	attributes = 5
	perBlock   = 100 * attributes
)

// Config configures what is inserted, how, and for how long.
type Config struct {
	Indexes   int // 0: none; 2: as in layout simple; 6: as in layout arkiv
	Rows      int // to insert
	PerCommit int // rows of a commit; zero means all
	Mode      Mode
	Seed      uint64

	// Limit, if not zero, ends the insertion after the commit in which the time
	// is exceeded.
	Limit time.Duration
}

// Insert creates the table in an empty database, inserts rows and records the
// latency of each commit, from Begin to Commit. It counts the rows and reads
// the last one back, and fails with bench.ErrMismatch when they differ.
func Insert(ctx context.Context, db *store.DB, cfg Config) (res bench.Result, err error) {
	t, err := newTable(db, cfg)
	if err == nil {
		err = t.db.Exec(ctx, t.ddl...)
	}
	if err == nil {
		res, err = t.run(ctx, cfg)
	}
	if err == nil {
		err = t.check(ctx, int(res.Rows))
	}
	if err != nil {
		err = fmt.Errorf("insert: %w", err)
	}
	return res, err
}

// run inserts until all rows are written or the time is up.
func (t *table) run(ctx context.Context, cfg Config) (bench.Result, error) {
	out, done, err := graph.Insertion[[]any]{
		Total: cfg.Rows, PerCommit: cmp.Or(cfg.PerCommit, cfg.Rows), Limit: cfg.Limit, Make: t.rows,
		Write: func(ctx context.Context, rows []any, _ int) error {
			return t.db.Write(ctx, func(ctx context.Context, tx driver.Tx) error { return t.insert(ctx, tx, cfg.Mode, rows) })
		},
	}.Run(ctx)
	return bench.Result{Outcome: out, Rows: uint64(done), Entities: uint64(done / attributes)}, err
}

// table is the table of string attributes of a layout.
type table struct {
	*driver.Table
	db      graph.Store
	ddl     []string
	one     string // INSERT of a row
	many    string // INSERT of batchRows rows
	history bool   // it has a to_block

	seed   uint64
	source *rand.PCG
	random *rand.Rand
}

func newTable(db *store.DB, cfg Config) (*table, error) {
	layout := map[int]string{0: "bare", 2: "simple", 6: "arkiv"}[cfg.Indexes]
	schema, err := schemas.Entities(layout, string(db.Engine().Info().Dialect))
	if err != nil {
		return nil, err
	}
	t := &table{db: graph.Store{DB: db}, history: layout != "simple", seed: splitmix.Scramble(cfg.Seed), source: new(rand.PCG)}
	t.random = rand.New(t.source)
	t.ddl = slices.DeleteFunc(slices.Clone(schema.Tables), func(ddl string) bool { return !strings.Contains(ddl, "TABLE string_attributes") })
	for _, index := range schema.Indexes {
		if strings.HasPrefix(index.Name, "string_attributes") {
			t.ddl = append(t.ddl, index.SQL)
		}
	}
	names := []string{"entity_key", "block", "key", "value"}
	if t.history {
		names = slices.Replace(names, 1, 2, "from_block", "to_block")
	}
	t.Table = graph.Columns("string_attributes", names...)
	values := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	t.one = "INSERT INTO string_attributes (" + strings.Join(names, ", ") + ") VALUES " + values
	t.many = t.one + strings.Repeat(", "+values, batchRows-1)
	return t, nil
}

// rows returns the values of n rows from number first on. Entities have random
// keys, which share prefixes no more often than hashes do, and repeating names
// and values.
func (t *table) rows(first, n int) []any {
	values := make([]any, 0, n*len(t.Columns))
	var key []byte
	for i := first; i < first+n; i++ {
		nth := i % attributes
		if nth == 0 || key == nil {
			t.source.Seed(t.seed, uint64(i/attributes))
			key = make([]byte, 0, len(entity.Key{}))
			for len(key) < cap(key) {
				key = binary.LittleEndian.AppendUint64(key, t.random.Uint64())
			}
		}
		t.source.Seed(^t.seed, uint64(i))
		values = append(values, key, int64(i/perBlock))
		if t.history {
			values = append(values, int64(entity.MaxBlock))
		}
		name := t.random.IntN(100)*attributes + nth // different within an entity
		values = append(values, "attr_"+strconv.Itoa(name), "value_"+strconv.Itoa(t.random.IntN(10_000)))
	}
	return values
}

func (t *table) insert(ctx context.Context, tx driver.Tx, mode Mode, values []any) error {
	width := len(t.Columns)
	if mode == Bulk {
		return tx.Insert(ctx, t.Table, values)
	}
	for ; mode == Batch && len(values) >= batchRows*width; values = values[batchRows*width:] {
		if _, err := tx.Exec(ctx, t.many, values[:batchRows*width]...); err != nil {
			return err
		}
	}
	for row := range slices.Chunk(values, width) {
		if _, err := tx.Exec(ctx, t.one, row...); err != nil {
			return err
		}
	}
	return nil
}

// check counts the rows and reads the last one.
func (t *table) check(ctx context.Context, rows int) error {
	r, err := t.db.DB.Engine().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	count, err := driver.QueryInt(ctx, r, "SELECT COUNT(*) FROM string_attributes")
	if err != nil {
		return err
	}
	last := t.rows(rows-1, 1)
	width := len(last)
	found, err := driver.QueryInt(ctx, r, "SELECT COUNT(*) FROM string_attributes WHERE entity_key = ? AND key = ? AND value = ?",
		last[0], last[width-2], last[width-1])
	if err == nil && (count != int64(rows) || found != 1) {
		err = fmt.Errorf("%w: %d rows, want %d; the last row is there %d times", bench.ErrMismatch, count, rows, found)
	}
	return err
}
