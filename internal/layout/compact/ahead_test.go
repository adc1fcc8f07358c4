package compact_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/sqlite"
)

// rig is a database with a layout whose merge the test turns by hand.
type rig struct {
	t      testing.TB
	engine driver.Engine
	layout *compact.Layout
	opts   compact.Options
}

func newRig(t testing.TB, opts compact.Options) *rig {
	ctx := context.Background()
	d, ok := driver.Lookup("sqlite")
	require.True(t, ok)
	options := driver.Options{Durability: driver.Unsafe}.WithDefaults()
	engine, err := d.Open(ctx, &url.URL{Scheme: "sqlite", Path: filepath.Join(t.TempDir(), "varve.db")}, options)
	require.NoError(t, err)
	b := &rig{t: t, engine: engine, opts: opts}
	b.forget()
	b.write(true, func(tx driver.Tx) error { return b.layout.Create(ctx, tx, false) })
	return b
}

// forget is what a process forgets that is killed.
func (b *rig) forget() {
	schema, err := schemas.Entities("compact", string(driver.SQLite))
	require.NoError(b.t, err)
	b.layout = compact.New(schema, b.opts)
}

func (b *rig) write(commit bool, f func(driver.Tx) error) {
	ctx := context.Background()
	tx, err := b.engine.Begin(ctx)
	require.NoError(b.t, err)
	defer tx.Rollback() // where f fails
	if err := f(tx); err != nil || !commit {
		require.NoError(b.t, errors.Join(err, tx.Rollback()))
		return
	}
	require.NoError(b.t, tx.Commit(ctx))
}

// apply applies blocks in one transaction.
func (b *rig) apply(commit bool, blocks ...entity.Block) {
	ctx := context.Background()
	b.write(commit, func(tx driver.Tx) error {
		for _, block := range blocks {
			w, err := b.layout.Writer(ctx, tx)
			if err != nil {
				return err
			}
			prior, err := w.Prior(ctx, block.Number, block.Needs())
			if err != nil {
				return err
			}
			set, err := entity.Fold(&block, prior, entity.Rules{})
			if err != nil {
				return err
			}
			set.Block = block.Number
			if err := w.Write(ctx, set); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepare plans a batch.
func (b *rig) prepare() {
	r, err := b.engine.Snapshot(context.Background())
	require.NoError(b.t, err)
	require.NoError(b.t, b.layout.Prepare(context.Background(), r))
	require.NoError(b.t, r.Close())
}

// merge does a slice of some steps and tells what is left.
func (b *rig) merge(commit bool, steps int) (left int) {
	ctx := context.Background()
	b.write(commit, func(tx driver.Tx) (err error) {
		left, err = b.layout.Maintain(ctx, tx, func() bool { steps--; return steps <= 0 })
		return err
	})
	return left
}

func (b *rig) drain() {
	for n := 0; b.merge(true, 1000) > 0; n++ {
		require.Less(b.t, n, 10_000, "it does not end")
	}
}

// dump returns the rows of all tables but those of postings and keys, which lie in runs
// as the merge went; check compares them with the versions.
func (b *rig) dump() map[string][]string {
	ctx := context.Background()
	r, err := b.engine.Snapshot(ctx)
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, r.Close()) }()
	all := map[string][]string{}
	for _, table := range b.layout.Tables() {
		if table.Name == "postings" || table.Name == "entity_keys" {
			continue
		}
		var columns []string
		for _, c := range table.Columns {
			if c.Name == "runs" {
				continue
			}
			columns = append(columns, c.Name)
		}
		rows, err := r.Query(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+table.Name)
		require.NoError(b.t, err)
		for rows.Next() {
			dest := make([]any, len(columns))
			for i, c := range table.Columns[:len(columns)] {
				dest[i] = map[driver.Type]any{driver.Int: new(int64), driver.Uint: new(uint64), driver.Text: new(string), driver.Blob: new([]byte)}[c.Type]
			}
			require.NoError(b.t, rows.Scan(dest...))
			var row strings.Builder
			for _, d := range dest {
				switch d := d.(type) {
				case *int64:
					fmt.Fprintf(&row, "%d ", *d)
				case *uint64:
					fmt.Fprintf(&row, "%d ", *d)
				case *[]byte:
					fmt.Fprintf(&row, "%x ", *d)
				}
			}
			all[table.Name] = append(all[table.Name], row.String())
		}
		require.NoError(b.t, errors.Join(rows.Err(), rows.Close()))
		slices.Sort(all[table.Name])
	}
	return all
}

func (b *rig) check() {
	ctx := context.Background()
	r, err := b.engine.Snapshot(ctx)
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, r.Close()) }()
	require.NoError(b.t, b.layout.Check(ctx, r, r, r, false, func(problem string) bool {
		b.t.Error(problem)
		return true
	}))
}

// drawBlock draws operations on a few keys, of which model says which are live and until when.
func drawBlock(t *rapid.T, number uint64, model map[int]uint64) entity.Block {
	block := entity.Block{Number: number}
	for i := range rapid.IntRange(0, 5).Draw(t, "operations") {
		n := rapid.IntRange(0, 11).Draw(t, "key")
		op := entity.Op{Kind: entity.Create, Key: entity.Key{byte(n)}, OpIndex: uint32(i)}
		if model[n] > number {
			op.Kind = rapid.SampledFrom([]entity.Kind{entity.Update, entity.ExtendBTL, entity.Delete}).Draw(t, "kind")
		}
		switch op.Kind {
		case entity.Delete:
			model[n] = 0
		default:
			op.BTL = uint64(rapid.IntRange(1, 6).Draw(t, "lifetime"))
			model[n] = number + op.BTL
		}
		if op.Kind == entity.Create || op.Kind == entity.Update {
			op.Content = []byte{byte(n)}
			op.StringAttributes = map[string]string{"s": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "text")}
			op.NumericAttributes = map[string]uint64{"n": rapid.Uint64Range(0, 3).Draw(t, "number")}
		}
		block.Ops = append(block.Ops, op)
	}
	return block
}

// TestAhead checks that it makes no difference to the tables when a batch is prepared:
// ahead, in the middle of its merge, or in a write transaction; from a view that is
// old or new; and whether batches were lost or transactions rolled back.
func TestAhead(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		opts := compact.Options{
			Backlog: 1 << 20, // blocks merge nothing themselves
			Batch:   rapid.IntRange(1, 12).Draw(rt, "batch"),
			Steps:   rapid.IntRange(1, 4).Draw(rt, "steps"),
			Page:    64, // so that runs have several
		}
		b, plain := newRig(t, opts), newRig(t, opts)
		defer func() { require.NoError(t, errors.Join(b.engine.Close(), plain.engine.Close())) }()
		var old driver.Reader
		release := func() {
			if old != nil {
				require.NoError(t, old.Close())
				old = nil
			}
		}
		defer release()
		model := map[int]uint64{}
		for number := uint64(1); number < 25; number++ {
			block := drawBlock(rt, number, model)
			if rapid.IntRange(0, 9).Draw(rt, "lost block") == 0 {
				b.apply(false, block)
			}
			b.apply(true, block)
			plain.apply(true, block)
			switch rapid.IntRange(0, 9).Draw(rt, "between") {
			case 0:
				b.forget()
				b.check()
			case 1:
				release()
				var err error
				old, err = b.engine.Snapshot(ctx)
				require.NoError(t, err)
			case 2:
				if old != nil {
					require.NoError(t, b.layout.Prepare(ctx, old))
				}
			case 3, 4, 5:
				b.prepare()
			case 6:
				b.merge(false, rapid.IntRange(1, 20).Draw(rt, "lost steps"))
			default:
				b.merge(true, rapid.IntRange(1, 20).Draw(rt, "steps done"))
			}
		}
		// What ran out in the batch that made it is taken away by the one after.
		for number := uint64(1000); number < 1002; number++ {
			b.drain()
			plain.drain()
			last := entity.Block{Number: number, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(number), 1}, BTL: 1e6}}}
			b.apply(true, last)
			plain.apply(true, last)
		}
		b.check()
		if diff := cmp.Diff(plain.dump(), b.dump()); diff != "" {
			rt.Fatalf("the tables differ (- in turn, + ahead): %s", diff)
		}
	})
}

// TestAheadExpired checks that a batch closes the entities of the batch before it that
// expired.
func TestAheadExpired(t *testing.T) {
	b := newRig(t, compact.Options{Backlog: 8, Batch: 2, Steps: 1}) // blocks merge nothing themselves
	defer func() { require.NoError(t, b.engine.Close()) }()
	create := func(n byte, index uint32, life uint64) entity.Op {
		return entity.Op{Kind: entity.Create, Key: entity.Key{n}, OpIndex: index, BTL: life}
	}
	b.apply(true, entity.Block{Number: 1, Ops: []entity.Op{create(1, 0, 2), create(2, 1, 100)}})
	b.apply(true, entity.Block{Number: 5, Ops: []entity.Op{create(3, 0, 100), create(4, 1, 100)}})
	require.False(t, b.layout.Prepared(true))
	b.prepare()
	require.True(t, b.layout.Prepared(true))
	b.drain()
	tables := b.dump()
	require.Len(t, tables["current_versions"], 3)
	require.Len(t, tables["closed_versions"], 1)
	b.check()
}

// TestAheadStale checks that a plan is not followed that was made from an old view, when
// another for the same blocks has been followed by then up to any step.
func TestAheadStale(t *testing.T) {
	ctx := context.Background()
	for steps := range 12 {
		b := expiringRig(t)
		old, err := b.engine.Snapshot(ctx)
		require.NoError(t, err)
		for range steps {
			b.merge(true, 1)
		}
		b.forget()
		require.NoError(t, b.layout.Prepare(ctx, old))
		require.NoError(t, old.Close())
		b.drain()
		require.Len(t, b.dump()["closed_versions"], 1, "after %d steps", steps)
		b.check()
		require.NoError(t, b.engine.Close())
	}
}

// expiringRig has a batch of blocks to merge, before the end of which an entity of an
// earlier batch runs out.
func expiringRig(t testing.TB) *rig {
	create := func(n byte, index uint32, life uint64) entity.Op {
		return entity.Op{Kind: entity.Create, Key: entity.Key{n}, OpIndex: index, BTL: life}
	}
	b := newRig(t, compact.Options{Backlog: 1 << 20, Batch: 4, Steps: 1})
	b.apply(true, entity.Block{Number: 1, Ops: []entity.Op{create(1, 0, 2), create(2, 1, 100)}})
	b.drain()
	b.apply(true, entity.Block{Number: 5, Ops: []entity.Op{create(3, 0, 100), create(4, 1, 100)}})
	b.apply(true, entity.Block{Number: 6, Ops: []entity.Op{create(5, 0, 100), create(6, 1, 100)}})
	return b
}
