package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// ownTables are tables of the store itself, with their statements.
type ownTables struct {
	*statement.Set
	tables []string
}

// newOwnTables returns the tables that a function of schemas describes.
func newOwnTables(sql schemas.Meta, err error) (ownTables, error) {
	return ownTables{statement.New(sql.Statements), sql.Tables}, err
}

// create creates the tables.
func (t ownTables) create(ctx context.Context, tx driver.Tx) error {
	for _, text := range t.tables {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("create the store's own tables: %w", err)
		}
	}
	return nil
}

// meta reads and writes the record: the tables with a store's settings and
// blocks.
type meta struct{ ownTables }

// The keys of the record.
const (
	metaFormat  = "format"           // version of everything below
	metaLayout  = "entities.layout"  // name of the layout
	metaRules   = "entities.extend"  // what ExtendBTL counts from: "block" or "expiration"
	metaHorizon = "entities.horizon" // the oldest block that can be read
	metaIndexes = "entities.indexes" // "deferred" while a bulk load has left some out
	metaOrigin  = "entities.origin"  // where the blocks come from, for tools
	metaChain   = "chain.id"         // the chain that the blocks are of
	metaGenesis = "chain.genesis"    // hash of that chain's first block

	// metaChecksum covers all other names and values, because engines without
	// page checksums would return a damaged horizon or rule as if it were
	// right.
	metaChecksum = "checksum"
)

// formatVersion changes when older code cannot read new stores. Layout compact
// has a separate version: 1 had a row for each set of ids, 2 had two trees of
// postings. Version 4 adds keys to runs first, where older programs would not
// look; opening a store of version 3 moves no data.
const (
	formatVersion    = "1"
	formatCompact    = "4"
	formatBeforeKeys = "3"
)

// formatOf returns the store format for an entity layout, which may be "".
func formatOf(layout string) string {
	if schemas.HasRuns(layout) {
		return formatCompact
	}
	return formatVersion
}

// checkFormat fails when this program cannot read a store of the recorded
// format.
func checkFormat(recorded map[string]string) error {
	layout := recorded[metaLayout]
	has, reads := recorded[metaFormat], formatOf(layout)
	if has == reads || has == formatBeforeKeys && reads == formatCompact {
		return nil
	}
	return driver.Of(ErrLayout, fmt.Errorf("the store, of layout %s, has format %q, and this program reads %q; "+
		"write a block tar with the version that made the store (varve import URL file.tar) and import that", layout, has, reads))
}

// recorded returns the store's record; nil when the database has no store.
func (db *DB) recorded(ctx context.Context) (map[string]string, error) {
	values, err := inView(ctx, db, db.meta.recorded)
	if err == nil {
		return values, nil
	}
	if values != nil { // the table is there, and cannot be read
		// Use another view, because some engines refuse further statements
		// after a failed one.
		if damage := db.missing(ctx, metaTable); errors.Is(damage, ErrCorrupt) {
			return nil, damage
		}
	}
	return nil, err
}

func (m meta) recorded(ctx context.Context, q driver.Querier) (map[string]string, error) {
	n, err := m.Int(ctx, q, "meta_exists")
	if err != nil || n == 0 {
		return nil, err
	}
	return m.all(ctx, q)
}

// create creates the tables of entities or events, records the values, one of
// which is named name, and returns the whole record. When several processes
// open a new database concurrently, one creates the tables under the writer's
// lock, and the others find them.
func (db *DB) create(ctx context.Context, name string, values map[string]string, tables func(context.Context, driver.Tx) error) (recorded map[string]string, err error) {
	err = db.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		if recorded, err = db.meta.recorded(ctx, tx); err != nil || recorded[name] != "" {
			return err
		}
		if recorded == nil {
			if err := db.meta.create(ctx, tx); err != nil {
				return err
			}
		}
		if err := tables(ctx, tx); err != nil {
			return err
		}
		if err := db.meta.setAll(ctx, tx, values); err != nil {
			return err
		}
		recorded, err = db.meta.all(ctx, tx)
		return err
	})
	return recorded, err
}

// columns returns all existing tables, even those that this user may not read,
// with the names of their columns.
func (m meta) columns(ctx context.Context, q driver.Querier) (map[string][]string, error) {
	tables := map[string][]string{}
	err := m.Each(ctx, q, "list_columns", nil, func(rows driver.Rows) error {
		var table, column []byte
		err := rows.Scan(&table, &column)
		tables[string(table)] = append(tables[string(table)], string(column))
		return err
	})
	return tables, err
}

// missing returns an error that wraps ErrCorrupt and names missing tables and
// columns.
func (m meta) missing(ctx context.Context, q driver.Querier, tables []*driver.Table) error {
	has, err := m.columns(ctx, q)
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	var errs []error
	for _, t := range tables {
		columns, ok := has[t.Name]
		if !ok {
			errs = append(errs, fmt.Errorf("%w: table %s is missing; restore a backup", ErrCorrupt, t.Name))
			continue
		}
		var lost []string
		for _, c := range t.Columns {
			if !slices.Contains(columns, c.Name) {
				lost = append(lost, c.Name)
			}
		}
		if len(lost) > 0 {
			next := "restore a backup"
			if t == checkpointsTable {
				next = "varve check --repair makes the table again"
			}
			errs = append(errs, fmt.Errorf("%w: table %s has no column %s; %s", ErrCorrupt, t.Name, strings.Join(lost, ", "), next))
		}
	}
	return errors.Join(errs...)
}

// create creates the record's tables in a database that must be empty.
func (m meta) create(ctx context.Context, tx driver.Tx) error {
	n, err := m.Int(ctx, tx, "other_tables")
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%w but %d other tables; give the store a database of its own, "+
			"or on Postgres a schema, as ?schema=name in the URL; a database of Arkiv's is read by varve import", errNoStore, n)
	}
	if err := m.ownTables.create(ctx, tx); err != nil {
		return err
	}
	return m.set(ctx, tx, metaFormat, formatVersion)
}

// set records a value, and updates the checksum of the record.
func (m meta) set(ctx context.Context, tx driver.Tx, name, value string) error {
	return m.setAll(ctx, tx, map[string]string{name: value})
}

func (m meta) setAll(ctx context.Context, tx driver.Tx, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := m.put(ctx, tx, name, values[name]); err != nil {
			return err
		}
	}
	return m.seal(ctx, tx)
}

// remove drops a value.
func (m meta) remove(ctx context.Context, tx driver.Tx, name string) error {
	if err := m.Exec(ctx, tx, "delete_meta", name); err != nil {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return m.seal(ctx, tx)
}

func (m meta) seal(ctx context.Context, tx driver.Tx) error {
	values, err := m.all(ctx, tx)
	if err != nil {
		return fmt.Errorf("record the checksum: %w", err)
	}
	return m.put(ctx, tx, metaChecksum, recordedSum(values))
}

func (m meta) put(ctx context.Context, tx driver.Tx, name, value string) error {
	err := m.Exec(ctx, tx, "delete_meta", name)
	if err == nil {
		err = m.Exec(ctx, tx, "insert_meta", name, value)
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	return nil
}

// all returns the whole record.
func (m meta) all(ctx context.Context, q driver.Querier) (map[string]string, error) {
	values := map[string]string{}
	err := m.Each(ctx, q, "list_meta", nil, func(rows driver.Rows) error {
		var name, value []byte
		err := rows.Scan(&name, &value)
		values[string(name)] = string(value)
		return err
	})
	return values, err
}

// get returns the recorded value of a key, or "".
func (m meta) get(ctx context.Context, q driver.Querier, name string) (string, error) {
	var value []byte
	err := m.Row(ctx, q, "get_meta", []any{name}, &value)
	if errors.Is(err, driver.ErrNoRows) {
		err = nil
	}
	return string(value), err
}

// recordedSum is the checksum of the record.
func recordedSum(values map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name != metaChecksum {
			fmt.Fprintf(sum, "%q=%q\n", name, values[name])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// checkRecorded compares the record with its checksum. Older stores have none.
func checkRecorded(values map[string]string) error {
	has, ok := values[metaChecksum]
	if want := recordedSum(values); ok && has != want {
		return fmt.Errorf("%w: what the store records of itself has checksum %s, stored is %q", ErrCorrupt, want, has)
	}
	if rules := values[metaRules]; rules != "" && rules != rulesName(true) && rules != rulesName(false) {
		return fmt.Errorf("%w: the store records %q for what ExtendBTL counts from", ErrCorrupt, rules)
	}
	return nil
}

// horizon returns the oldest readable block.
func (m meta) horizon(ctx context.Context, q driver.Querier) (uint64, error) {
	return m.number(ctx, q, metaHorizon)
}

// number returns the recorded number of a key, or zero.
func (m meta) number(ctx context.Context, q driver.Querier, name string) (uint64, error) {
	value, err := m.get(ctx, q, name)
	if err != nil {
		return 0, err
	}
	return parseHorizon(value)
}

func parseHorizon(value string) (uint64, error) {
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: recorded horizon %q", ErrCorrupt, value)
	}
	return n, nil
}

// raiseHorizon records that blocks below a number cannot be read, unless the
// horizon is higher already.
func (m meta) raiseHorizon(ctx context.Context, tx driver.Tx, to uint64) error {
	if to == 0 {
		return nil
	}
	has, err := m.horizon(ctx, tx)
	if err != nil || to <= has {
		return err
	}
	return m.set(ctx, tx, metaHorizon, strconv.FormatUint(to, 10))
}

// head returns the last block.
func (m meta) head(ctx context.Context, q driver.Querier) (BlockHeader, error) {
	return m.queryHead(ctx, q, "head", nil)
}

// headAndHorizon returns the last block and the oldest readable one.
func (m meta) headAndHorizon(ctx context.Context, q driver.Querier) (h BlockHeader, horizon uint64, err error) {
	var value []byte
	if h, err = m.queryHead(ctx, q, "head_and_horizon", nil, &value); err != nil {
		return h, 0, err
	}
	if h.Empty {
		horizon, err = m.horizon(ctx, q)
	} else {
		horizon, err = parseHorizon(string(value))
	}
	return h, horizon, err
}

// headAt returns the last block at or below a number.
func (m meta) headAt(ctx context.Context, q driver.Querier, block uint64) (BlockHeader, error) {
	return m.queryHead(ctx, q, "block_at_or_below", []any{int64(min(block, entity.MaxBlock))})
}

// blocksBetween returns the blocks from one number to another, at most limit of
// them.
func (m meta) blocksBetween(ctx context.Context, q driver.Querier, from, to uint64, limit int64) (list []BlockHeader, err error) {
	args := []any{int64(min(from, entity.MaxBlock)), int64(min(to, entity.MaxBlock)), limit}
	err = m.Each(ctx, q, "blocks_between", args, func(rows driver.Rows) error {
		b, err := scanBlock(rows)
		list = append(list, b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read blocks: %w", err)
	}
	return list, nil
}

// queryHead runs a statement that returns a block, its digest, and further
// columns for dest.
func (m meta) queryHead(ctx context.Context, q driver.Querier, name string, args []any, dest ...any) (BlockHeader, error) {
	var block int64
	var record []byte
	switch err := m.Row(ctx, q, name, args, append([]any{&block, &record}, dest...)...); {
	case errors.Is(err, driver.ErrNoRows):
		return BlockHeader{Empty: true}, nil
	case err != nil:
		return BlockHeader{}, fmt.Errorf("read the head: %w", err)
	}
	return headFromRecord(block, record)
}

// blocks returns the first block and the number of blocks.
func (m meta) blocks(ctx context.Context, q driver.Querier) (first, count uint64, err error) {
	var low, high, n int64
	err = m.Row(ctx, q, "block_range", nil, &low, &high, &n)
	return uint64(low), uint64(n), err
}
