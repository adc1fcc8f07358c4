package duckdb_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// change is one transaction on the rows of a key.
type change struct {
	name string
	do   func(ctx context.Context, tx driver.Tx) error
}

func insertRow(from int64, value uint64) func(context.Context, driver.Tx) error {
	return func(ctx context.Context, tx driver.Tx) error {
		return tx.Insert(ctx, attributes, row("k", from, value))
	}
}

// insertRows inserts the row among enough others for an appender, which it then removes.
func insertRows(from int64, value uint64) func(context.Context, driver.Tx) error {
	return func(ctx context.Context, tx driver.Tx) error {
		if err := tx.Insert(ctx, attributes, append(manyRows(0, 40), row("k", from, value)...)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DELETE FROM attributes WHERE entity_key <> ?", []byte("k"))
		return err
	}
}

func updateRow(from, to int64) func(context.Context, driver.Tx) error {
	return func(ctx context.Context, tx driver.Tx) error {
		return tx.Update(ctx, closing, to, []any{[]byte("k"), "name", from})
	}
}

func deleteRow(from int64) func(context.Context, driver.Tx) error {
	return func(ctx context.Context, tx driver.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM attributes WHERE from_block = ?", from)
		return err
	}
}

func all(steps ...func(context.Context, driver.Tx) error) func(context.Context, driver.Tx) error {
	return func(ctx context.Context, tx driver.Tx) error {
		for i, step := range steps {
			if err := step(ctx, tx); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	}
}

// history is what layouts do to one key. Every step is legal; an index that
// still knows rows deleted or replaced would refuse some.
func history() []change {
	list := []change{{"first", insertRow(1, 1)}}
	for b := int64(2); b < 6; b++ {
		list = append(list, change{fmt.Sprint("close and open ", b), all(updateRow(b-1, b), insertRow(b, uint64(b)))})
	}
	return append(list,
		change{"update twice", all(updateRow(5, 50), updateRow(5, 51))},
		change{"update again", updateRow(5, 52)},
		change{"delete", deleteRow(5)},
		change{"insert the deleted key", insertRow(5, 60)},
		change{"delete and insert", all(deleteRow(5), insertRow(5, 61))},
		change{"delete and append", all(deleteRow(5), insertRows(5, 62))},
		change{"insert, delete, insert", all(insertRow(7, 1), deleteRow(7), insertRows(7, 2))},
		change{"insert, update, delete, insert", all(insertRow(8, 1), updateRow(8, 70), deleteRow(8), insertRow(8, 3))},
		change{"update, delete, insert, update", all(updateRow(8, 71), deleteRow(8), insertRow(8, 4), updateRow(8, 72))},
		change{"delete all and insert one", all(deleteRow(8), deleteRow(7), deleteRow(5), insertRow(8, 5), insertRow(5, 63))},
	)
}

const historyEnd = "SELECT count(*) * 1000 + CAST(sum(value) AS BIGINT) FROM attributes"

// The same history with open snapshots, which keep old index entries alive, and
// with the database closed or checkpointed before each step.
func TestIndexesFollowHistory(t *testing.T) {
	between := map[string]func(t *testing.T, e driver.Engine, path string) driver.Engine{
		"plain": func(_ *testing.T, e driver.Engine, _ string) driver.Engine { return e },
		"snapshots open": func(t *testing.T, e driver.Engine, _ string) driver.Engine {
			snapshot(t, e)
			return e
		},
		"checkpointed": func(t *testing.T, e driver.Engine, _ string) driver.Engine {
			_, err := driver.Checkpoint(context.Background(), e, true)
			require.NoError(t, err)
			return e
		},
		"reopened": func(t *testing.T, e driver.Engine, path string) driver.Engine {
			require.NoError(t, e.Close())
			return openAt(t, path, driver.Options{})
		},
	}
	for name, f := range between {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			e := openAt(t, path, driver.Options{Readers: len(history()) + 2})
			require.NoError(t, createTables(e))
			for _, c := range history() {
				require.NoError(t, write(e, c.do), c.name)
				e = f(t, e, path)
			}
			require.Equal(t, int64(6*1000+1+2+3+4+63+5), number(t, snapshot(t, e), historyEnd))
			require.ErrorIs(t, write(e, insertRow(5, 1)), driver.ErrConflict)
		})
	}
}

// Changes that were rolled back leave no trace in the indexes.
func TestIndexesForgetRolledBack(t *testing.T) {
	e := openNew(t, driver.Options{})
	ctx := context.Background()
	for _, c := range history() {
		tx, err := e.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, c.do(ctx, tx), c.name)
		require.NoError(t, tx.Rollback())
		require.NoError(t, write(e, c.do), c.name)
	}
	require.Equal(t, int64(6*1000+1+2+3+4+63+5), number(t, snapshot(t, e), historyEnd))
}
