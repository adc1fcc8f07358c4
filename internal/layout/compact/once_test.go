package compact_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// readings counts how often the row of progress is read, and written.
type readings struct{ read, written int }

func (r *readings) see(text string) {
	if strings.Contains(text, "FROM progress") {
		r.read++
	}
	if strings.HasPrefix(text, "UPDATE progress") {
		r.written++
	}
}

type countedView struct {
	driver.Querier
	*readings
}

func (q countedView) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	q.see(text)
	return q.Querier.Query(ctx, text, args...)
}

type countedTx struct {
	driver.Tx
	*readings
}

func (tx countedTx) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	tx.see(text)
	return tx.Tx.Query(ctx, text, args...)
}

func (tx countedTx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	tx.see(text)
	return tx.Tx.Exec(ctx, text, args...)
}

// TestProgressIsReadOnce: a block reads and writes the row of progress once, also when it
// merges a share, and a view reads it once however much it is asked.
func TestProgressIsReadOnce(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{Backlog: 4, Steps: 1})
	defer func() { require.NoError(t, b.engine.Close()) }()
	for number := uint64(1); number < 8; number++ {
		block := entity.Block{Number: number, Ops: []entity.Op{
			{Kind: entity.Create, Key: entity.Key{byte(number)}, BTL: 1000},
			{Kind: entity.Create, Key: entity.Key{byte(number), 1}, OpIndex: 1, BTL: 1000},
		}}
		b.write(true, func(tx driver.Tx) error {
			n := &readings{}
			w, err := b.layout.Writer(ctx, countedTx{tx, n})
			require.NoError(t, err)
			prior, err := w.Prior(ctx, number, block.Needs())
			require.NoError(t, err)
			set, err := entity.Fold(&block, prior, entity.Rules{})
			require.NoError(t, err)
			set.Block = number
			require.NoError(t, w.Write(ctx, set))
			require.Equal(t, readings{1, 1}, *n, "block %d", number)
			return nil
		})
	}
	require.NotEmpty(t, b.dump()["current_versions"], "blocks have merged")
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	n := &readings{}
	v, err := b.layout.View(ctx, countedView{r, n}, 7)
	require.NoError(t, err)
	for range 3 {
		_, err := v.Get(ctx, entity.Key{1})
		require.NoError(t, err)
		count, err := v.Count(ctx, nil)
		require.NoError(t, err)
		require.EqualValues(t, 14, count)
		found := 0
		for _, err := range v.Query(ctx, layout.Request{Limit: 20, Content: true}) {
			require.NoError(t, err)
			found++
		}
		require.Equal(t, 14, found)
	}
	require.Equal(t, readings{read: 1}, *n)
}

// countedPages counts the pages of postings that are read.
type countedPages struct {
	driver.Querier
	pages *int
}

func (q countedPages) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := q.Querier.Query(ctx, text, args...)
	if err != nil || !strings.Contains(text, "JOIN postings") && !strings.Contains(text, "FROM postings") {
		return rows, err
	}
	return countedRows{rows, q.pages}, nil
}

type countedRows struct {
	driver.Rows
	n *int
}

func (r countedRows) Next() bool {
	next := r.Rows.Next()
	if next {
		*r.n++
	}
	return next
}

// TestCountIsLed: of terms that all must be true of, a short one keeps long ones from being
// looked up, also when matches are counted; and without one what is long is counted right.
func TestCountIsLed(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	const entities = 4000
	block := entity.Block{Number: 1}
	for i := range uint32(entities) {
		op := entity.Op{Kind: entity.Create, Key: entity.Key{byte(i), byte(i >> 8), 1}, OpIndex: i, BTL: 1000,
			NumericAttributes: map[string]uint64{"n": uint64(i)}, StringAttributes: map[string]string{"group": string(rune('a' + i%1000))}}
		block.Ops = append(block.Ops, op)
	}
	b.apply(true, block)
	b.drain()
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	pages := 0
	v, err := b.layout.View(ctx, countedPages{r, &pages}, 1)
	require.NoError(t, err)
	atLeast := query.Compare{Name: "n", Op: query.GreaterOrEqual, Value: query.Number(1000)}
	led, err := v.Count(ctx, query.And{Terms: []query.Expr{atLeast, query.Compare{Name: "group", Op: query.Equal, Value: query.Text("b")}}})
	require.NoError(t, err)
	require.EqualValues(t, 3, led)
	require.Less(t, pages, 10)
	pages = 0
	all, err := v.Count(ctx, atLeast)
	require.NoError(t, err)
	require.EqualValues(t, entities-1000, all)
	require.Greater(t, pages, 30, "the range is long")
}

// countedStatements counts what a transaction runs.
type countedStatements struct {
	driver.Tx
	n *int
}

func (tx countedStatements) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	*tx.n++
	return tx.Tx.Query(ctx, text, args...)
}

// TestPriorIsReadTogether: what is stored of the keys of a block is read with as many
// statements however many there are, also of those that ran out or never were.
func TestPriorIsReadTogether(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	const entities = 60
	ops := func(kind entity.Kind, from, n int) (list []entity.Op) {
		for i := range n {
			list = append(list, entity.Op{Kind: kind, Key: entity.Key{byte(from + i), 1}, OpIndex: uint32(i), BTL: 5})
		}
		return list
	}
	b.apply(true, entity.Block{Number: 1, Ops: ops(entity.Create, 0, entities)})
	b.drain()
	statements := func(number uint64, n int) (count int) {
		block := entity.Block{Number: number, Ops: append(ops(entity.Expire, 0, n), ops(entity.Expire, entities, n)...)}
		b.write(false, func(tx driver.Tx) error {
			w, err := b.layout.Writer(ctx, countedStatements{tx, &count})
			require.NoError(t, err)
			count = 0
			prior, err := w.Prior(ctx, number, block.Needs())
			require.NoError(t, err)
			for i := range n {
				require.True(t, prior[entity.Key{byte(i), 1}].Expired, "of %d", i)
				require.Zero(t, prior[entity.Key{byte(entities + i), 1}])
			}
			return nil
		})
		return count
	}
	require.Equal(t, statements(9, 1), statements(9, entities))
}
