package compact_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// explainedView notes the plans of what reads closed_versions.
type explainedView struct {
	driver.Querier
	plan *[]string
}

func (q explainedView) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	if strings.Contains(text, "FROM closed_versions") {
		steps, err := explain(ctx, q.Querier, text, args)
		if err != nil {
			return nil, err
		}
		*q.plan = append(*q.plan, steps...)
	}
	return q.Querier.Query(ctx, text, args...)
}

// explain returns the steps of a statement's plan.
func explain(ctx context.Context, q driver.Querier, text string, args []any) (steps []string, err error) {
	rows, err := q.Query(ctx, "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var id, parent, unused int64
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, errors.Join(rows.Err(), rows.Close())
}

// TestEndedAtTheLog: what blocks ended is found on both sides of the place where the merged ones
// end and the log begins.
func TestEndedAtTheLog(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	one, two := entity.Key{1}, entity.Key{2}
	b.apply(true, entity.Block{Number: 1, Ops: []entity.Op{
		{Kind: entity.Create, Key: one, BTL: 100}, {Kind: entity.Create, Key: two, OpIndex: 1, BTL: 100},
	}})
	b.apply(true, entity.Block{Number: 2, Ops: []entity.Op{{Kind: entity.Delete, Key: one}}})
	b.drain()
	b.apply(true, entity.Block{Number: 3, Ops: []entity.Op{{Kind: entity.Delete, Key: two}}})
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	v, err := b.layout.View(ctx, r, 3)
	require.NoError(t, err)
	for from, want := range map[uint64][]entity.Closing{
		2: {{Block: 2, Key: one, From: 1}, {Block: 3, Key: two, From: 1}},
		3: {{Block: 3, Key: two, From: 1}},
	} {
		var got []entity.Closing
		for c, err := range v.ClosingsBetween(ctx, from, 3) {
			require.NoError(t, err)
			got = append(got, c)
		}
		require.Equal(t, want, got, "from block %d", from)
	}
}

// TestDebtIsKept: what was put off stays known when it cannot be read again.
func TestDebtIsKept(t *testing.T) {
	b := newRig(t, compact.Options{Backlog: 8})
	defer func() { require.NoError(t, b.engine.Close()) }()
	none, _ := b.layout.Due(0)
	for i := range uint64(3) { // more than a quarter of the backlog, and less than blocks merge themselves
		b.apply(true, entity.Block{Number: i + 1, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(i)}, BTL: 100}}})
	}
	some, _ := b.layout.Due(0)
	require.NotEqual(t, none, some)
	r, err := b.engine.Snapshot(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = b.layout.Owed(gone, r)
	require.ErrorIs(t, err, context.Canceled)
	again, _ := b.layout.Due(0)
	require.Equal(t, some, again, "the debt is forgotten")
	owed, err := b.layout.Owed(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, 3, owed)
}

// TestEndedIsFound: what operations ended in merged blocks is found by an index that has
// nothing else.
func TestEndedIsFound(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	for n := uint64(1); n <= 40; n++ {
		ops := []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(n)}, BTL: 3 + n%40}} // some run out
		if n%4 == 0 {
			ops = append(ops, entity.Op{Kind: entity.Update, Key: entity.Key{byte(n - 1)}, OpIndex: 1, BTL: 100})
		}
		b.apply(true, entity.Block{Number: n, Ops: ops})
		if n%20 == 0 {
			b.drain()
		}
	}

	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	var plan []string
	v, err := b.layout.View(ctx, explainedView{r, &plan}, 40)
	require.NoError(t, err)
	var got []entity.Closing
	for c, err := range v.ClosingsBetween(ctx, 11, 20) {
		require.NoError(t, err)
		got = append(got, c)
	}
	require.Equal(t, []entity.Closing{
		{Block: 12, Key: entity.Key{11}, From: 11}, {Block: 16, Key: entity.Key{15}, From: 15}, {Block: 20, Key: entity.Key{19}, From: 19},
	}, got)
	require.Equal(t, []string{
		"SEARCH closed_versions USING INDEX closed_versions_ended (to_block>? AND to_block<?)", "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
	}, plan)
	n, err := driver.QueryInt(ctx, r, "SELECT count(*) FROM closed_versions INDEXED BY closed_versions_ended WHERE to_block < expires")
	require.NoError(t, err)
	all, err := driver.QueryInt(ctx, r, "SELECT count(*) FROM closed_versions")
	require.NoError(t, err)
	require.EqualValues(t, 10, n)
	require.Greater(t, all, n)
}
