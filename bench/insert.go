package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// InsertMode is how rows reach the engine.
type InsertMode string

// The modes.
const (
	Single InsertMode = "single" // a prepared INSERT of one row, again and again
	Batch  InsertMode = "batch"  // a prepared INSERT of batchRows rows
	Bulk   InsertMode = "bulk"   // the engine's fastest way, driver.Tx.Insert
)

// InsertModes are all modes.
var InsertModes = []InsertMode{Single, Batch, Bulk}

// batchRows is the number of rows in a statement of mode Batch.
const batchRows = 100

// InsertConfig is the raw insertion of the seed's Experiments 1 to 4: rows of one
// table of string attributes, with some of its indexes and nothing else of a
// store.
type InsertConfig struct {
	Indexes   int // 0: none; 2: those of layout simple; 6: those of layout arkiv
	Rows      int // to insert, where Loop does not say how many commits
	PerCommit int // rows of a commit; zero means all
	Mode      InsertMode
	Seed      uint64

	// Limit, if not zero, ends the insertion early, after the commit in which it
	// passes.
	Limit time.Duration

	Loop Loop // how many commits; nil means as many as Rows need
}

// Rows of an entity, and entities of a block, in the seed's Experiment 3.
const (
	insertAttributes = 5
	insertPerBlock   = 100 * insertAttributes
)

// Insert makes the table in an empty database, inserts rows and records the
// latency of each commit, Begin to Commit. It counts the rows and reads the last
// one back, and fails with ErrMismatch when they differ.
func Insert(ctx context.Context, engine driver.Engine, cfg InsertConfig) (Result, error) {
	res := NewResult()
	t, err := newInsertTable(engine, cfg)
	if err == nil {
		err = t.create(ctx, engine)
	}
	if err != nil {
		return res, fmt.Errorf("insert: %w", err)
	}
	if err := t.run(ctx, engine, cfg, &res); err != nil {
		return res, fmt.Errorf("insert: %w", err)
	}
	res.Entities = res.Rows / insertAttributes
	if err := t.check(ctx, engine, int(res.Rows)); err != nil {
		return res, fmt.Errorf("insert: %w", err)
	}
	return res, nil
}

// run inserts until the rows, the time or the loop end.
func (t *insertTable) run(ctx context.Context, engine driver.Engine, cfg InsertConfig, res *Result) error {
	if cfg.PerCommit == 0 {
		cfg.PerCommit = cfg.Rows
	}
	loop := cfg.Loop
	if loop == nil {
		loop = Times((cfg.Rows + cfg.PerCommit - 1) / cfg.PerCommit)
		if cfg.Limit > 0 {
			rows := loop
			loop = while(func() bool { return res.Latency.Total() < cfg.Limit && rows.Loop() })
		}
	}
	rows := make([]any, 0, cfg.PerCommit*len(t.table.Columns))
	for loop.Loop() {
		n := cfg.PerCommit
		if cfg.Loop == nil {
			n = min(n, cfg.Rows-int(res.Rows))
		}
		loop.StopTimer()
		rows = t.rows(rows[:0], int(res.Rows), n)
		loop.StartTimer()
		start := time.Now()
		err := t.commit(ctx, engine, cfg.Mode, rows)
		res.Latency.Record(time.Since(start))
		if err != nil {
			return err
		}
		res.Rows += uint64(n)
	}
	return nil
}

// insertTable is the table of string attributes of a layout.
type insertTable struct {
	table   driver.Table
	ddl     []string
	one     string // INSERT of a row
	many    string // INSERT of batchRows rows
	history bool   // it has a to_block
	choice  *random
}

func newInsertTable(engine driver.Engine, cfg InsertConfig) (*insertTable, error) {
	layout := map[int]string{0: "bare", 2: "simple", 6: "arkiv"}[cfg.Indexes]
	if layout == "" || cfg.Rows < 1 && cfg.Loop == nil || cfg.PerCommit < 0 {
		return nil, fmt.Errorf("%d rows with %d indexes: want rows, and 0, 2 or 6 indexes", cfg.Rows, cfg.Indexes)
	}
	schema, err := schemas.Entities(layout, string(engine.Info().Dialect))
	if err != nil {
		return nil, err
	}
	t := &insertTable{history: layout != "simple", choice: newRandom(cfg.Seed)}
	for _, ddl := range schema.Tables {
		if strings.Contains(ddl, "TABLE string_attributes") {
			t.ddl = append(t.ddl, ddl)
		}
	}
	for _, index := range schema.Indexes {
		if strings.HasPrefix(index.Name, "string_attributes") {
			t.ddl = append(t.ddl, index.SQL)
		}
	}
	t.table = driver.Table{Name: "string_attributes", Columns: []driver.Column{{Name: "entity_key", Type: driver.Blob}}}
	blocks := []string{"block"}
	if t.history {
		blocks = []string{"from_block", "to_block"}
	}
	for _, name := range blocks {
		t.table.Columns = append(t.table.Columns, driver.Column{Name: name, Type: driver.Int})
	}
	t.table.Columns = append(t.table.Columns, driver.Column{Name: "key", Type: driver.Text}, driver.Column{Name: "value", Type: driver.Text})
	t.one, t.many = t.statement(1), t.statement(batchRows)
	return t, nil
}

func (t *insertTable) statement(rows int) string {
	names := make([]string, len(t.table.Columns))
	for i, c := range t.table.Columns {
		names[i] = c.Name
	}
	row := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	return "INSERT INTO string_attributes (" + strings.Join(names, ", ") + ") VALUES " + row + strings.Repeat(", "+row, rows-1)
}

func (t *insertTable) create(ctx context.Context, engine driver.Engine) error {
	tx, err := engine.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, ddl := range t.ddl {
		if _, err := tx.Exec(ctx, ddl); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// rows appends the values of n rows from number first on. Entities have random
// keys, and attributes the names and values of generated entities.
func (t *insertTable) rows(values []any, first, n int) []any {
	var key []byte
	for i := first; i < first+n; i++ {
		nth := i % insertAttributes
		if nth == 0 || key == nil {
			t.choice.at(keyStream, uint64(i/insertAttributes), 0)
			key = make([]byte, len(entity.Key{}))
			t.choice.bytes(key)
		}
		t.choice.at(attributeStream, uint64(i), 0)
		block := int64(i / insertPerBlock)
		values = append(values, key, block)
		if t.history {
			values = append(values, int64(entity.MaxBlock))
		}
		name := (t.choice.IntN(namePool/insertAttributes))*insertAttributes + nth // different within an entity
		values = append(values, "attr_"+strconv.Itoa(name), "value_"+strconv.Itoa(t.choice.IntN(numberLimit)))
	}
	return values
}

func (t *insertTable) commit(ctx context.Context, engine driver.Engine, mode InsertMode, values []any) error {
	tx, err := engine.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := t.insert(ctx, tx, mode, values); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func (t *insertTable) insert(ctx context.Context, tx driver.Tx, mode InsertMode, values []any) error {
	width := len(t.table.Columns)
	switch mode {
	case Bulk:
		return tx.Insert(ctx, &t.table, values)
	case Batch:
		for ; len(values) >= batchRows*width; values = values[batchRows*width:] {
			if _, err := tx.Exec(ctx, t.many, values[:batchRows*width]...); err != nil {
				return err
			}
		}
	case Single:
	default:
		return fmt.Errorf("unknown mode %q", mode)
	}
	for ; len(values) > 0; values = values[width:] {
		if _, err := tx.Exec(ctx, t.one, values[:width]...); err != nil {
			return err
		}
	}
	return nil
}

// check counts the rows and looks for the last one.
func (t *insertTable) check(ctx context.Context, engine driver.Engine, rows int) error {
	r, err := engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	var count, found int64
	if err := driver.QueryRow(ctx, r, "SELECT COUNT(*) FROM string_attributes", nil, &count); err != nil {
		return err
	}
	last := t.rows(nil, rows-1, 1)
	width := len(last)
	err = driver.QueryRow(ctx, r, "SELECT COUNT(*) FROM string_attributes WHERE entity_key = ? AND key = ? AND value = ?",
		[]any{last[0], last[width-2], last[width-1]}, &found)
	if err != nil {
		return err
	}
	if count != int64(rows) || found != 1 {
		return mismatch("%d rows, want %d; the last row is there %d times", count, rows, found)
	}
	return nil
}
