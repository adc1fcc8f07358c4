package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// BenchmarkBesideLoop compares a plain loop that puts blocks of 100 entities in
// Arkiv's tables with Varve's layouts, on the same blocks and with the same
// settings of SQLite. The loop leaves checkpoints to SQLite, which runs them
// within a commit; it looks up no key and keeps no digest.
func BenchmarkBesideLoop(b *testing.B) {
	suite.Flags.Skip(b)
	b.Run("system=loop", func(b *testing.B) {
		benchmarkLimit(b, func(tb testing.TB, db *store.DB) func(ctx context.Context, blk entity.Block) error {
			return openLoop(tb, db).write
		})
	})
	for _, layout := range []string{"arkiv", "compact"} {
		b.Run("system=varve/layout="+layout, func(b *testing.B) { benchmarkLimit(b, limitBlock(layout)) })
	}
}

// loop is a plain program that keeps Arkiv's three tables with their thirteen indexes: a
// transaction for each block, and an INSERT for each row. Of the operations it knows creations.
type loop struct {
	db                       *sql.DB
	texts, numbers, payloads *sql.Stmt
}

// openLoop makes the tables in a new file, with the settings of a store's
// writer.
func openLoop(tb testing.TB, like *store.DB) *loop {
	settings, err := like.Engine().Settings(tb.Context())
	require.NoError(tb, err)
	db, err := sql.Open("sqlite3", filepath.Join(tb.TempDir(), "loop.db"))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	db.SetMaxOpenConns(1) // which has the pragmas
	exec := func(text string) {
		_, err := db.ExecContext(tb.Context(), text)
		require.NoError(tb, err)
	}
	for _, s := range settings {
		switch s.Name {
		case "page_size", "journal_mode", "synchronous", "cache_size", "mmap_size", "temp_store":
			var got string
			exec("PRAGMA " + s.Name + " = " + s.Value)
			require.NoError(tb, db.QueryRowContext(tb.Context(), "PRAGMA "+s.Name).Scan(&got))
			require.Equal(tb, s.Value, got, s.Name)
		}
	}
	schema, err := schemas.Entities("arkiv", "sqlite")
	require.NoError(tb, err)
	exec(strings.Join(schema.Tables, ";"))
	for _, index := range schema.Indexes {
		exec(index.SQL)
	}
	l := &loop{db: db}
	for text, stmt := range map[string]**sql.Stmt{
		"INSERT INTO string_attributes VALUES (?, ?, ?, ?, ?)":  &l.texts,
		"INSERT INTO numeric_attributes VALUES (?, ?, ?, ?, ?)": &l.numbers,
		"INSERT INTO payloads VALUES (?, ?, ?, ?, ?, ?, ?)":     &l.payloads,
	} {
		*stmt, err = db.PrepareContext(tb.Context(), text)
		require.NoError(tb, err)
	}
	return l
}

func (l *loop) write(ctx context.Context, blk entity.Block) error {
	ctx = context.WithoutCancel(ctx) // the driver starts a goroutine for each statement that can be cancelled
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	intoTexts, intoNumbers, intoPayloads := tx.StmtContext(ctx, l.texts), tx.StmtContext(ctx, l.numbers), tx.StmtContext(ctx, l.payloads)
	insert := func(into *sql.Stmt, row ...any) {
		if err == nil {
			_, err = into.ExecContext(ctx, row...)
		}
	}
	for i := range blk.Ops {
		op := &blk.Ops[i]
		key, from, to := op.Key[:], int64(blk.Number), int64(entity.AddBlocks(blk.Number, op.BTL))
		texts := map[string]string{entity.AttrKey: op.Key.String(), entity.AttrOwner: op.Owner.String(), entity.AttrCreator: op.Owner.String()}
		maps.Copy(texts, op.StringAttributes)
		values := map[string]uint64{
			entity.AttrCreatedAtBlock: blk.Number, entity.AttrExpiration: uint64(to), entity.AttrTxIndex: uint64(op.TxIndex),
			entity.AttrOpIndex: uint64(op.OpIndex), entity.AttrSequence: entity.MakeSequence(blk.Number, op.TxIndex, op.OpIndex),
		}
		maps.Copy(values, op.NumericAttributes)
		for name, value := range texts {
			insert(intoTexts, key, from, to, name, value)
		}
		for name, value := range values {
			insert(intoNumbers, key, from, to, name, int64(value))
		}
		textJSON, _ := json.Marshal(texts) // maps of text and numbers have no error
		valueJSON, _ := json.Marshal(values)
		insert(intoPayloads, key, from, to, op.Content, op.ContentType, string(textJSON), string(valueJSON))
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// TestBesideLoop: the loop and the layout arkiv write the same rows into the same tables with the same indexes.
func TestBesideLoop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "varve.db")
	db, err := store.Open(t.Context(), "sqlite:"+path, nil)
	require.NoError(t, err)
	apply, l := limitBlock("arkiv")(t, db), openLoop(t, db)
	for blk, err := range bench.Blocks(bench.Typical.WithPayload(50), bench.GenOptions{Entities: 60, PerBlock: 20, Seed: 1}) {
		require.NoError(t, err)
		require.NoError(t, l.write(t.Context(), blk))
		require.NoError(t, apply(t.Context(), blk))
	}
	require.NoError(t, db.Close())
	_, err = l.db.ExecContext(t.Context(), "ATTACH DATABASE ? AS varve", path)
	require.NoError(t, err)
	for rows, want := range map[string]int{
		"* FROM %s.string_attributes":  60 * (bench.Typical.Strings + 3),
		"* FROM %s.numeric_attributes": 60 * (bench.Typical.Numbers + 5),
		"* FROM %s.payloads":           60,
		"name, sql FROM %s.sqlite_master WHERE tbl_name NOT LIKE 'varve%%'": 3 + 13,
	} {
		in := func(database string) string { return "SELECT " + fmt.Sprintf(rows, database) }
		for _, text := range []string{in("main"), in("varve"), in("main") + " INTERSECT " + in("varve")} {
			var n int
			require.NoError(t, l.db.QueryRowContext(t.Context(), "SELECT count(*) FROM ("+text+")").Scan(&n))
			require.Equal(t, want, n, text)
		}
	}
}
