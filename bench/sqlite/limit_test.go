package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// BenchmarkCommitLimit compares a block of 100 entities of 5 KB (write=block)
// with the least work that SQLite can do with its bytes: one row with one blob
// in one durable transaction (write=blob). Both have the same settings. The
// factor between them is the cost of keeping entities.
func BenchmarkCommitLimit(b *testing.B) {
	b.Run("engine=sqlite/layout=none/write=blob", func(b *testing.B) { benchmarkLimit(b, limitBlob) })
	b.Run("engine=sqlite/layout=compact/write=block", func(b *testing.B) { benchmarkLimit(b, limitBlock("compact")) })
}

type limitWrite func(tb testing.TB, db *store.DB) func(ctx context.Context, blk entity.Block) error

func benchmarkLimit(b *testing.B, open limitWrite) {
	db, err := store.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "limit.db"), nil)
	require.NoError(b, err)
	defer func() { require.NoError(b, db.Close()) }()
	write := open(b, db)
	times := latency.NewRecorder()
	for blk, err := range bench.Blocks(bench.Typical, bench.GenOptions{Entities: bench.Endless, Seed: 1}) {
		require.NoError(b, err)
		if !b.Loop() {
			break
		}
		start := time.Now()
		err = write(b.Context(), blk)
		took := time.Since(start)
		b.StopTimer() // the next block is drawn
		require.NoError(b, err)
		times.Record(took)
		b.StartTimer()
	}
	for name, q := range map[string]float64{"p50-ns": 50, "p99-ns": 99} {
		b.ReportMetric(float64(times.Quantile(q)), name)
	}
}

// limitBlob writes a block's keys, owners, payloads and attributes, but for numbers, as one blob.
func limitBlob(tb testing.TB, db *store.DB) func(ctx context.Context, blk entity.Block) error {
	table := &driver.Table{Name: "blobs", Columns: []driver.Column{{Name: "id", Type: driver.Int}, {Name: "body", Type: driver.Blob}}}
	s := graph.Store{DB: db}
	require.NoError(tb, s.Exec(tb.Context(), "CREATE TABLE blobs (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"))
	var body []byte
	return func(ctx context.Context, blk entity.Block) error {
		body = body[:0]
		for i := range blk.Ops {
			op := &blk.Ops[i]
			body = append(append(append(body, op.Key[:]...), op.Owner[:]...), op.Content...)
			for name, value := range op.StringAttributes {
				body = append(append(body, name...), value...)
			}
			for name := range op.NumericAttributes {
				body = append(body, name...)
			}
		}
		return s.Write(ctx, func(ctx context.Context, tx driver.Tx) error {
			return tx.Insert(ctx, table, []any{int64(blk.Number), body})
		})
	}
}

func limitBlock(layout string) limitWrite {
	return func(tb testing.TB, db *store.DB) func(ctx context.Context, blk entity.Block) error {
		ents, err := db.Entities(tb.Context(), &store.EntityOptions{Layout: layout})
		require.NoError(tb, err)
		return func(ctx context.Context, blk entity.Block) error {
			_, err := ents.Apply(ctx, blk)
			return err
		}
	}
}
