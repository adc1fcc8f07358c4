package sqlite_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
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

// baselineData is what all baselines begin with.
var baselineData = bench.Dataset{
	Engine: suite.Engine, Layout: "arkiv", Profile: bench.Typical, Gen: bench.GenOptions{Entities: 10_000, PerBlock: 100, Seed: 1},
}

// baseline is an open copy of a data set.
type baseline struct {
	*bench.Copy
	data bench.Dataset
}

func openBaseline(b *testing.B, d bench.Dataset, opts *store.Options) *baseline {
	cache, err := bench.OpenCache("")
	require.NoError(b, err)
	cp, err := cache.OpenCopy(b.Context(), d, opts)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, cp.Close()) })
	return &baseline{cp, d}
}

// commit measures commits of the store.
func (r *baseline) commit(b *testing.B, cfg bench.CommitConfig) {
	var err error
	cfg.Expect, err = r.data.Expectation(r.Ready)
	require.NoError(b, err)
	cfg.More = b.Loop
	res, err := bench.Commit(b.Context(), r.Entities, cfg)
	require.NoError(b, err)
	report(b, res)
}

// report gives the figures of the calls alone.
func report(b *testing.B, res bench.Result) {
	for _, m := range res.Metrics() {
		b.ReportMetric(m.Value, m.Unit)
	}
}

// BenchmarkBaselineCommit measures one block of 100 new entities an operation.
// via=plain and via=varve-inline checkpoint in the commit that fills the log,
// after the same number of pages; via=varve has the store's own checkpointer.
func BenchmarkBaselineCommit(b *testing.B) {
	suite.Flags.Skip(b)
	d := baselineData
	inline := &store.Options{Checkpoint: driver.Inline, WALFrames: plainCheckpoint}
	cfg := bench.CommitConfig{Blocks: bench.Blocks(d.Profile, d.Gen.Next(bench.Endless))}
	b.Run("engine=sqlite/layout=arkiv/profile=typical/durability=durable/via=varve", func(b *testing.B) { openBaseline(b, d, nil).commit(b, cfg) })
	b.Run("engine=sqlite/layout=arkiv/profile=typical/durability=durable/via=varve-inline", func(b *testing.B) { openBaseline(b, d, inline).commit(b, cfg) })
	b.Run("engine=sqlite/layout=arkiv/profile=typical/durability=durable/via=plain", func(b *testing.B) { plainCommit(b, openBaseline(b, d, nil)) })
}

func plainCommit(b *testing.B, r *baseline) {
	x, err := r.data.Expectation(r.Ready)
	require.NoError(b, err)
	p := openPlain(b, r)
	rows := x.Counts().Rows()
	var last store.Block
	next, stop := iter.Pull2(bench.Blocks(r.data.Profile, r.data.Gen.Next(bench.Endless)))
	defer stop()
	out, err := pace.Loop(b.Context(), pace.Config{More: b.Loop}, func(_ context.Context, s *pace.Step) (err error) {
		if last, err, _ = next(); err != nil {
			return err
		}
		s.Begin()
		err = p.apply(&last)
		s.Stop()
		return errors.Join(err, x.Apply(&last))
	})
	require.NoError(b, err)
	report(b, bench.Result{Outcome: out, Rows: x.Counts().Rows() - rows, Entities: uint64(out.Count) * 100})
	p.close(b)
	checkPlain(b, r, x, &last)
}

// checkPlain reads what the plain loop wrote through the store: if the rows
// were not those that the store writes, it would read something else.
func checkPlain(b *testing.B, r *baseline, x *bench.Expectation, last *store.Block) {
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
	suite.Flags.Skip(b)
	d := baselineData
	b.Run("engine=sqlite/layout=arkiv/profile=typical/durability=durable/via=varve", func(b *testing.B) {
		cfg := bench.GetConfig{Profile: d.Profile, Of: d.Gen, Config: pace.Config{Seed: 1, More: b.Loop}}
		res, err := bench.Get(b.Context(), openBaseline(b, d, nil).Entities, cfg)
		require.NoError(b, err)
		report(b, res)
	})
	b.Run("engine=sqlite/layout=arkiv/profile=typical/durability=durable/via=plain", func(b *testing.B) { plainGet(b, openBaseline(b, d, nil), true) })
	b.Run("engine=sqlite/layout=arkiv/profile=typical/durability=durable/via=raw", func(b *testing.B) { plainGet(b, openBaseline(b, d, nil), false) })
}

func plainGet(b *testing.B, r *baseline, decode bool) {
	var keys []store.Key
	for blk, err := range bench.Blocks(r.data.Profile.WithPayload(0), r.data.Gen) {
		require.NoError(b, err)
		for i := range blk.Ops {
			keys = append(keys, blk.Ops[i].Key)
		}
	}
	p := openPlain(b, r)
	defer p.close(b)
	_, err := p.conn.ExecContext(b.Context(), "BEGIN")
	require.NoError(b, err)
	out, err := pace.Loop(b.Context(), pace.Config{Seed: 1, More: b.Loop}, func(_ context.Context, s *pace.Step) error {
		key := keys[s.Rand.IntN(len(keys))]
		row, err := p.read(key, int64(r.Ready.Head), decode)
		s.Stop()
		if err != nil || len(row.payload) != r.data.Profile.Payload {
			b.Fatalf("%d bytes, %v", len(row.payload), err)
		}
		if decode && row.strings[entity.AttrKey] != key.String() {
			b.Fatalf("another entity, %q", row.strings[entity.AttrKey])
		}
		return nil
	})
	require.NoError(b, err)
	report(b, bench.Result{Outcome: out, Entities: uint64(out.Count)})
}
