package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/internal/rowfile"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// BackupInfo describes the contents of a backup.
type BackupInfo struct {
	Engine        string `json:"engine,omitempty"` // that it was made from
	EngineVersion string `json:"engine_version,omitempty"`

	Format      string      `json:"format"` // of the store's tables
	Layout      string      `json:"layout,omitempty"`
	Head        BlockHeader `json:"head"`
	Blocks      uint64      `json:"blocks"`
	Horizon     uint64      `json:"horizon,omitempty"`
	EventLayout string      `json:"event_layout,omitempty"`
	EventHead   uint64      `json:"event_head,omitempty"`
	Rows        uint64      `json:"rows"` // of all tables
}

// Backup writes every row of the database, from one view, in the file format of
// varve backup. Restore and varve restore make a store from that file, on any
// engine that supports the layouts. Blocks and events written meanwhile are not
// in the backup. Progress is called from time to time with the number of rows
// written. The view is held until the end, so a long backup may need a larger
// Options.MaxReaderAge (ErrReaderExpired). Backup fails with ErrLayout when the
// database holds no store.
func (db *DB) Backup(ctx context.Context, w io.Writer, progress func(rows uint64)) (c BackupInfo, err error) {
	defer wrap(&err, "backup")
	q, err := db.engine.Snapshot(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := driver.LiftTimeouts(ctx, q); err != nil {
		return c, err
	}
	tables, c, err := db.contents(ctx, q)
	if err != nil {
		return c, err
	}
	c.Engine, c.EngineVersion = db.engine.Info().Name, db.engine.Info().Version
	head, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	out, err := rowfile.NewWriter(w, head)
	if err != nil {
		return c, err
	}
	each := everyRow(ctx, progress)
	for _, t := range tables {
		if err := db.backupTable(ctx, q, out, t, each); err != nil {
			out.Abort()
			return c, fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	c.Rows = out.Rows()
	return c, out.Close()
}

var (
	metaTable   = &driver.Table{Name: "varve_meta", Columns: []driver.Column{{Name: "name", Type: driver.Text}, {Name: "value", Type: driver.Text}}}
	blocksTable = &driver.Table{Name: "varve_blocks", Columns: []driver.Column{{Name: "block", Type: driver.Int}, {Name: "digest", Type: driver.Blob}}}
)

// contents lists the tables of a view's database and describes their contents.
func (db *DB) contents(ctx context.Context, q driver.Querier) (tables []*driver.Table, c BackupInfo, err error) {
	recorded, err := db.meta.recorded(ctx, q)
	if err != nil {
		return nil, c, err
	}
	if recorded == nil {
		return nil, c, errNoStore
	}
	c.Format, c.Layout, c.EventLayout = recorded[metaFormat], recorded[metaLayout], recorded[metaEventLayout]
	tables = append(tables, metaTable, blocksTable)
	if c.Layout != "" {
		e := &Entities{db: db}
		if err := e.check(recorded, "", false); err != nil {
			return nil, c, err
		}
		tables = append(tables, e.layout.Tables()...)
	}
	var log *eventlog.Log
	if c.EventLayout != "" {
		if log, err = db.eventLog(recorded); err != nil {
			return nil, c, err
		}
		tables = append(tables, eventlog.Tables...)
		if recorded[metaEventCheckpoints] != "" {
			tables = append(tables, checkpointsTable)
		}
	}
	if err := db.meta.missing(ctx, q, tables); err != nil {
		return nil, c, err
	}
	if c.Head, c.Horizon, err = db.meta.headAndHorizon(ctx, q); err != nil {
		return nil, c, err
	}
	if _, c.Blocks, err = db.meta.blocks(ctx, q); err != nil {
		return nil, c, err
	}
	if log != nil {
		c.EventHead, err = log.Head(ctx, q)
	}
	return tables, c, err
}

func (db *DB) backupTable(ctx context.Context, q driver.Querier, out *rowfile.Writer, t *driver.Table, each func() error) error {
	if err := out.Table(t); err != nil {
		return err
	}
	columns, dest := make([]string, len(t.Columns)), make([]any, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = c.Name
		switch {
		case c.Type == driver.Int:
			dest[i] = new(int64)
		case c.Type == driver.Uint:
			dest[i] = new(uint64)
		default:
			dest[i] = new([]byte)
			if c.Type == driver.Text {
				columns[i] = db.engine.Info().Dialect.Traits().TextColumn(c.Name)
			}
		}
	}
	query := "SELECT " + strings.Join(columns, ", ") + " FROM " + t.Name
	return driver.QueryRows(ctx, q, query, nil, func(rows driver.Rows) error {
		if err := errors.Join(rows.Scan(dest...), out.Row(dest)); err != nil {
			return err
		}
		return each()
	})
}

// restoreRows is the number of rows in one insert.
const restoreRows = 2000

// Restore fills an empty database with a backup, in one transaction: all of it
// or nothing. It fails with ErrLayout when the database has tables already or
// the engine lacks a layout of the backup, and with ErrCorrupt when the backup
// is damaged or cut, or when the restored rows contradict the backup's own
// counts. Progress is called from time to time with the number of rows written.
// DB.Check compares the rows with the digests afterwards.
func (db *DB) Restore(ctx context.Context, r io.Reader, progress func(rows uint64)) (c BackupInfo, err error) {
	defer wrap(&err, "restore")
	in, err := rowfile.NewReader(r)
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	defer in.Close()
	var want BackupInfo
	if err := json.Unmarshal(in.Head, &want); err != nil {
		return c, fmt.Errorf("%w: the head of the backup: %w", ErrCorrupt, err)
	}
	if err := db.checkComplete(ctx); err != nil {
		return c, err
	}
	err = db.writeBulk(ctx, func(inner context.Context, tx driver.Tx) error {
		if err := db.holdsNothing(inner, tx); err != nil {
			return err
		}
		s := &restoring{db: db, tx: tx, done: ctx.Err, progress: progress}
		if err := s.run(inner, in); err != nil {
			return err
		}
		_, c, err = db.contents(inner, tx)
		c.Engine, c.EngineVersion, c.Rows, want.Rows = want.Engine, want.EngineVersion, s.rows, s.rows
		if err == nil && c != want {
			err = fmt.Errorf("%w: the backup should end with block %d and event %d, it ends with %d and %d", ErrCorrupt, want.Head.Number, want.EventHead, c.Head.Number, c.EventHead)
		}
		return err
	})
	return c, err
}

// holdsNothing fails with ErrLayout when there is a store. Other tables are
// refused when the first table is created.
func (db *DB) holdsNothing(ctx context.Context, q driver.Querier) error {
	recorded, err := db.meta.recorded(ctx, q)
	if err != nil || recorded == nil {
		return err
	}
	var kinds []string
	if layout := recorded[metaLayout]; layout != "" {
		kinds = append(kinds, "entities of layout "+layout)
	}
	if recorded[metaEventLayout] != "" {
		kinds = append(kinds, "events")
	}
	return driver.Of(ErrLayout, fmt.Errorf("the database holds a Varve store already (%s); restore into a new database, "+
		"or on Postgres into a schema of its own, as ?schema=name in the URL", strings.Join(kinds, " and ")))
}

// restoring is a running restore.
type restoring struct {
	db       *DB
	tx       driver.Tx
	done     func() error
	progress func(uint64)
	recorded map[string]string
	tables   []*driver.Table // that the store has
	indexes  []func() error  // functions that create indexes at the end
	rows     uint64
}

// run restores the rows of a backup. Its first table is the store's record;
// after it the layouts are known, and their tables are created.
func (s *restoring) run(ctx context.Context, in *rowfile.Reader) error {
	if err := s.db.meta.create(ctx, s.tx); err != nil {
		return err
	}
	s.recorded = map[string]string{}
	if err := s.empty(ctx, []*driver.Table{metaTable}); err != nil {
		return err
	}
	s.tables = append(s.tables, blocksTable)
	var current, target *driver.Table // of the backup, and the store's with the same columns
	var pending []any                 // rows of it
	for end := false; !end; {
		t, values, err := in.Next()
		if end = errors.Is(err, io.EOF); err != nil && !end {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}

		// Insert the rows at the end of their table, or when they are many.
		if len(pending) > 0 && (t != current || len(pending) >= restoreRows*len(target.Columns)) {
			if s.progress != nil {
				s.progress(s.rows)
			}
			if err := s.tx.Insert(ctx, target, pending); err != nil {
				return fmt.Errorf("table %s: %w", target.Name, err)
			}
			pending = pending[:0]
			if err := s.done(); err != nil {
				return err
			}
		}

		// Go to the next table.
		if t != current {
			if target == metaTable {
				if err := s.create(ctx); err != nil {
					return err
				}
			}
			if target, err = s.target(t); err != nil {
				return err
			}
			current = t
		}
		if end {
			break
		}
		if target == metaTable {
			s.recorded[values[0].(string)] = values[1].(string)
		}
		s.rows++
		pending = append(pending, values...)
	}
	for _, build := range s.indexes {
		if err := build(); err != nil {
			return err
		}
	}
	return nil
}

// target returns the store's table for a table of the backup; nil for nil.
func (s *restoring) target(t *driver.Table) (*driver.Table, error) {
	switch {
	case t == nil:
		return nil, nil
	case len(s.recorded) == 0 && t.Name != metaTable.Name:
		return nil, fmt.Errorf("%w: the backup begins with table %q", ErrCorrupt, t.Name)
	}
	i := slices.IndexFunc(s.tables, func(has *driver.Table) bool { return has.Name == t.Name })
	if i < 0 || !slices.Equal(s.tables[i].Columns, t.Columns) {
		return nil, driver.Of(ErrLayout, fmt.Errorf("the backup has a table %q with columns %v, which this version does not know; restore it with the version that made it", t.Name, t.Columns))
	}
	return s.tables[i], nil
}

// create creates the tables of the layouts in the backup's record.
func (s *restoring) create(ctx context.Context) error {
	if s.recorded[metaLayout] != "" {
		e := &Entities{db: s.db}
		if err := e.check(s.recorded, "", false); err != nil {
			return err
		}
		if err := e.layout.Create(ctx, s.tx, true); err != nil {
			return err
		}
		if err := s.empty(ctx, e.layout.Tables()); err != nil {
			return err
		}
		indexed, names := e.deferredIndexes()
		for _, name := range names {
			s.indexes = append(s.indexes, func() error { return cmp.Or(s.done(), indexed.CreateIndex(ctx, s.tx, name)) })
		}
	}
	if s.recorded[metaEventLayout] != "" {
		log, err := s.db.eventLog(s.recorded)
		if err != nil {
			return err
		}
		if err := log.Create(ctx, s.tx); err != nil {
			return err
		}
		if err := s.empty(ctx, eventlog.Tables); err != nil {
			return err
		}
	}
	if s.recorded[metaEventCheckpoints] != "" {
		checkpoints, err := newOwnTables(schemas.CheckpointTables(string(s.db.engine.Info().Dialect)))
		if err != nil {
			return err
		}
		s.tables = append(s.tables, checkpointsTable)
		return checkpoints.create(ctx, s.tx)
	}
	return nil
}

// empty removes the initial rows of new tables.
func (s *restoring) empty(ctx context.Context, tables []*driver.Table) error {
	for _, t := range tables {
		if _, err := s.tx.Exec(ctx, "DELETE FROM "+t.Name); err != nil {
			return err
		}
	}
	s.tables = append(s.tables, tables...)
	return nil
}
