package sqlite_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/gobench"
	"github.com/varvedb/varve/internal/coreset"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The baselines put the store beside what a careful programmer writes by hand:
// mattn/go-sqlite3 through database/sql, the same tables and indexes (a copy
// of the same data set), the same pragmas, the same rows, each statement
// prepared once and run for each row. The plain loop does less: it does not
// look up what is live, checks no operation and keeps no digest.

// plainCheckpoint is SQLite's own automatic checkpoint, in pages.
const plainCheckpoint = 1000

// BenchmarkBaselineCommit measures one block of 100 new entities an operation.
// via=plain and via=varve-inline checkpoint in the commit that fills the log,
// after the same number of pages; via=varve has the store's own checkpointer.
func BenchmarkBaselineCommit(b *testing.B) {
	coreset.Skip(b)
	d := suite.Dataset("arkiv", bench.Typical)
	inline := func(o *store.Options) { o.Checkpoint, o.WALFrames = driver.Inline, plainCheckpoint }
	cfg := bench.CommitConfig{Blocks: bench.Blocks(d.Profile, d.Gen.Next(bench.Endless))}
	b.Run(suite.Name(d)+"/via=varve", func(b *testing.B) { suite.Open(b, d).Commit(b, cfg) })
	b.Run(suite.Name(d)+"/via=varve-inline", func(b *testing.B) { suite.Open(b, d, inline).Commit(b, cfg) })
	b.Run(suite.Name(d)+"/via=plain", func(b *testing.B) { plainCommit(b, suite.Open(b, d)) })
}

func plainCommit(b *testing.B, r *gobench.Run) {
	x, err := r.Dataset.Expectation(r.Ready)
	require.NoError(b, err)
	p := openPlain(b, r)
	rows := x.Counts().Rows()
	var last store.Block
	res := bench.NewResult()
	for blk, err := range bench.Blocks(r.Dataset.Profile, r.Dataset.Gen.Next(bench.Endless)) {
		require.NoError(b, err)
		if !b.Loop() {
			break
		}
		require.NoError(b, res.Time(func() error { return p.apply(&blk) }))
		b.StopTimer()
		res.Entities += uint64(len(blk.Ops))
		require.NoError(b, x.Apply(&blk))
		last = blk
		b.StartTimer()
	}
	res.Rows = x.Counts().Rows() - rows
	gobench.Report(b)(res, nil)
	p.close(b)
	checkPlain(b, r, x, &last)
}

// checkPlain reads what the plain loop wrote through the store: if the rows
// were not those that the store writes, it would read something else.
func checkPlain(b *testing.B, r *gobench.Run, x *bench.Expectation, last *store.Block) {
	ctx := b.Context()
	s, err := r.Entities.Summary(ctx)
	require.NoError(b, err)
	require.Equal(b, x.Live(), s.Live)
	rows := uint64(0)
	for _, t := range s.Tables {
		rows += t.Rows
	}
	require.Equal(b, x.Counts().Rows(), rows)
	snap, err := r.Entities.At(ctx, store.Head)
	require.NoError(b, err)
	defer snap.Close()
	for i := range last.Ops {
		op := &last.Ops[i]
		e, err := snap.Get(ctx, op.Key)
		require.NoError(b, err)
		require.Equal(b, op.StringAttributes, e.StringAttributes)
		require.Equal(b, op.NumericAttributes, e.NumericAttributes)
		require.Equal(b, op.Content, e.Content)
		n, err := snap.Count(ctx, everyAttribute(last, op))
		require.NoError(b, err)
		require.Equal(b, uint64(1), n)
	}
}

// everyAttribute is a query for the entities that have all attributes of one,
// which reads the rows of attributes and not their copy beside the payload.
func everyAttribute(blk *store.Block, op *store.Op) query.Expr {
	var all query.And
	texts, numbers := attributes(blk, op)
	for name, value := range texts {
		all.Terms = append(all.Terms, query.Compare{Name: name, Op: query.Equal, Value: query.Text(value)})
	}
	for name, value := range numbers {
		all.Terms = append(all.Terms, query.Compare{Name: name, Op: query.Equal, Value: query.Number(value)})
	}
	return all
}

// BenchmarkBaselineGet measures one entity read by its key an operation.
// via=plain decodes the two JSON columns as via=varve does, via=raw only scans
// the row.
func BenchmarkBaselineGet(b *testing.B) {
	coreset.Skip(b)
	d := suite.Dataset("arkiv", bench.Typical)
	b.Run(suite.Name(d)+"/via=varve", func(b *testing.B) {
		cfg := bench.GetConfig{Profile: d.Profile, Of: d.Gen, Seed: 1, Loop: b}
		gobench.Report(b)(bench.Get(b.Context(), suite.Open(b, d).Entities, cfg))
	})
	b.Run(suite.Name(d)+"/via=plain", func(b *testing.B) { plainGet(b, suite.Open(b, d), true) })
	b.Run(suite.Name(d)+"/via=raw", func(b *testing.B) { plainGet(b, suite.Open(b, d), false) })
}

func plainGet(b *testing.B, r *gobench.Run, decode bool) {
	var keys []store.Key
	for blk, err := range bench.Blocks(r.Dataset.Profile.WithPayload(0), r.Dataset.Gen) {
		require.NoError(b, err)
		for i := range blk.Ops {
			keys = append(keys, blk.Ops[i].Key)
		}
	}
	p := openPlain(b, r)
	defer p.close(b)
	_, err := p.conn.ExecContext(b.Context(), "BEGIN")
	require.NoError(b, err)
	choice := rand.New(rand.NewPCG(1, 1))
	res := bench.NewResult()
	for b.Loop() {
		key := keys[choice.IntN(len(keys))]
		var row plainRow
		err := res.Time(func() (err error) {
			row, err = p.read(key, int64(r.Ready.Head), decode)
			return err
		})
		if err != nil || len(row.payload) != r.Dataset.Profile.Payload {
			b.Fatalf("%d bytes, %v", len(row.payload), err)
		}
		if decode && row.strings[entity.AttrKey] != key.String() {
			b.Fatalf("another entity, %q", row.strings[entity.AttrKey])
		}
		res.Entities++
	}
	gobench.Report(b)(res, nil)
}
