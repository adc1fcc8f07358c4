package feed

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// schema describes the tables of one of Arkiv's stores.
type schema struct {
	store   string
	version int64 // the migration that this package reads
	tables  []string
}

var (
	historySchema = schema{"sqlite-store", 2, []string{
		"last_block", "numeric_attributes", "payloads", "schema_migrations", "string_attributes",
	}}
	stateSchema = schema{"sqlite-bitmap-store", 1, []string{
		"last_block", "numeric_attributes_values_bitmaps", "payloads", "schema_migrations", "string_attributes_values_bitmaps",
	}}
)

var (
	//go:embed sql/tables.sql
	tablesSQL string
	//go:embed sql/version.sql
	versionSQL string
	//go:embed sql/last_block.sql
	lastBlockSQL string
	//go:embed sql/versions.sql
	versionsSQL string
	//go:embed sql/endings.sql
	endingsSQL string
	//go:embed sql/count.sql
	countSQL string
	//go:embed sql/state.sql
	stateSQL string
)

// IsArkiv reports whether a SQLite database has the tables of Arkiv's
// sqlite-store or sqlite-bitmap-store, of any version.
func IsArkiv(ctx context.Context, q driver.Querier) (bool, error) {
	_, missing, err := findSchema(ctx, q)
	return err == nil && len(missing) == 0, err
}

// Arkiv streams the changes of the blocks that a database of Arkiv's
// sqlite-store has followed, in block order: the changes that entity.Fold would
// have made of those blocks, as far as entity.Digest covers them. Old has only
// Key and LastModifiedAtBlock, and ContentKept is false. The database does not
// record blocks without changes, except the last block: if it is one, an empty
// changeset ends the stream.
//
// A database of sqlite-bitmap-store has only the entities as they are after its
// last block. They come in the same way, each in the recorded block of its last
// change, and the first changeset's Horizon is the last block. They may include
// entities that expired without an operation, whose versions end by themselves
// as usual.
//
// The stream holds two of the engine's readers while it runs, so eng must allow
// that many. It ends at the first error. A database that is not Arkiv's, has
// another schema version or holds contradictory rows gives an error that names
// table and row and wraps ErrFormat; an engine of another dialect gives
// driver.ErrUnsupported.
func Arkiv(ctx context.Context, eng driver.Engine) iter.Seq2[entity.Changeset, error] {
	return func(yield func(entity.Changeset, error) bool) {
		a := new(arkiv)
		stopped, err := a.stream(ctx, eng, yield)
		err = errors.Join(err, a.close())
		if err != nil && !stopped {
			yield(entity.Changeset{}, fmt.Errorf("arkiv database: %w", err))
		}
	}
}

// arkiv is an open database. It needs two readers, because versions are read by
// the block that opened them and, concurrently, by the block that ended them,
// and a reader runs one query at a time.
type arkiv struct {
	schema  *schema
	readers []driver.Reader
	last    uint64 // the last block that Arkiv followed
	found   bool   // there is one
}

// stream yields the changesets and reports whether the caller stopped it.
func (a *arkiv) stream(ctx context.Context, eng driver.Engine, yield func(entity.Changeset, error) bool) (stopped bool, err error) {
	if err := a.open(ctx, eng); err != nil {
		return false, err
	}
	var done uint64
	horizon, some := uint64(0), false // oldest block that the database has data of
	if a.schema == &stateSchema {
		horizon = a.last
	}
	for set, err := range a.history(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
		set.Horizon = horizon
		if !yield(set, nil) {
			return true, nil
		}
		done, some, horizon = set.Block, true, 0
	}
	if a.found && (!some || a.last > done) {
		return !yield(entity.Changeset{Block: a.last, Horizon: horizon}, nil), nil
	}
	return false, nil
}

func (a *arkiv) history(ctx context.Context) iter.Seq2[entity.Changeset, error] {
	if a.schema == &stateSchema {
		none := func(func(entity.Closing, error) bool) {}
		return entity.History(entities(ctx, a.readers[0], a.last), none)
	}
	return entity.History(openings(ctx, a.readers[0], a.last), closings(ctx, a.readers[1], a.last))
}

// open checks the database and opens two views, which must be of the same
// state. Arkiv may be writing, so they may differ.
func (a *arkiv) open(ctx context.Context, eng driver.Engine) error {
	if info := eng.Info(); info.Dialect != driver.SQLite {
		return fmt.Errorf("%w: it is a SQLite file, which %s does not read", driver.ErrUnsupported, info.Name)
	}
	first, err := a.snapshot(ctx, eng)
	if err != nil {
		return err
	}
	if a.schema, err = checkSchema(ctx, first); err != nil {
		return err
	}
	if a.last, a.found, err = lastBlock(ctx, first); err != nil {
		return err
	}
	second, err := a.snapshot(ctx, eng)
	if err != nil {
		return err
	}
	last, _, err := lastBlock(ctx, second)
	if err == nil && last != a.last {
		err = fmt.Errorf("it went from block %d to %d while being opened; stop Arkiv or read a copy", a.last, last)
	}
	return err
}

func (a *arkiv) snapshot(ctx context.Context, eng driver.Engine) (driver.Reader, error) {
	r, err := eng.Snapshot(ctx)
	if err == nil {
		a.readers = append(a.readers, r)
	}
	return r, err
}

func (a *arkiv) close() (err error) {
	for _, r := range a.readers {
		err = errors.Join(err, r.Close())
	}
	return err
}

// checkSchema determines which of Arkiv's stores wrote the database, and
// refuses those that this package cannot read.
func checkSchema(ctx context.Context, q driver.Querier) (*schema, error) {
	found, missing, err := findSchema(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, malformed("not a database of Arkiv's %s: no table %s", found.store, strings.Join(missing, ", "))
	}
	var versions, dirty []int64
	err = driver.QueryRows(ctx, q, versionSQL, nil, func(rows driver.Rows) error {
		var v, d int64
		err := rows.Scan(&v, &d)
		versions, dirty = append(versions, v), append(dirty, d)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("table schema_migrations: %w", err)
	case len(versions) != 1:
		return nil, malformed("table schema_migrations: %d rows, want 1", len(versions))
	case versions[0] != found.version:
		return nil, malformed("schema version %d of %s, want %d; let an Arkiv of that version migrate it", versions[0], found.store, found.version)
	case dirty[0] != 0:
		return nil, malformed("a migration of the schema was interrupted; let Arkiv repair it")
	}
	return found, nil
}

// findSchema returns the schema that the tables resemble most, and what they
// lack.
func findSchema(ctx context.Context, q driver.Querier) (found *schema, missing []string, err error) {
	state, history := slices.Clone(stateSchema.tables), slices.Clone(historySchema.tables)
	err = driver.QueryRows(ctx, q, tablesSQL, nil, func(rows driver.Rows) error {
		var name string
		err := rows.Scan(&name)
		is := func(s string) bool { return s == name }
		state, history = slices.DeleteFunc(state, is), slices.DeleteFunc(history, is)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list tables: %w", err)
	}
	if len(state) < len(history) {
		return &stateSchema, state, nil
	}
	return &historySchema, history, nil
}

// lastBlock reads the last block's number; found is false when there is none.
func lastBlock(ctx context.Context, q driver.Querier) (last uint64, found bool, err error) {
	err = driver.QueryRows(ctx, q, lastBlockSQL, nil, func(rows driver.Rows) error {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		if n < 0 || n > entity.MaxBlockNumber {
			return malformed("block %d is not between 0 and %d", n, uint64(entity.MaxBlockNumber))
		}
		if found {
			return malformed("more than one row")
		}
		last, found = uint64(n), true
		return nil
	})
	if err != nil {
		err = fmt.Errorf("table last_block: %w", err)
	}
	return last, found, err
}
