package compact_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// tally counts what is read: look-ups in postings, the pages that they gave, and versions.
type tally struct{ finds, pages, versions int }

type talliedView struct {
	driver.Querier
	*tally
}

func (q talliedView) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := q.Querier.Query(ctx, text, args...)
	switch {
	case err != nil:
	case strings.Contains(text, "JOIN postings") || strings.Contains(text, "FROM postings"):
		q.finds++
		return talliedRows{rows, &q.pages}, nil
	case strings.Contains(text, "FROM current_versions"):
		return talliedRows{rows, &q.versions}, nil
	}
	return rows, err
}

type talliedRows struct {
	driver.Rows
	n *int
}

func (r talliedRows) Next() bool {
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
	read := &tally{}
	v, err := b.layout.View(ctx, talliedView{r, read}, 1)
	require.NoError(t, err)
	atLeast := query.Compare{Name: "n", Op: query.GreaterOrEqual, Value: query.Number(1000)}
	led, err := v.Count(ctx, query.And{Terms: []query.Expr{atLeast, query.Compare{Name: "group", Op: query.Equal, Value: query.Text("b")}}})
	require.NoError(t, err)
	require.EqualValues(t, 3, led)
	require.Less(t, read.pages, 10)
	*read = tally{}
	all, err := v.Count(ctx, atLeast)
	require.NoError(t, err)
	require.EqualValues(t, entities-1000, all)
	require.Greater(t, read.pages, 30, "the range is long")
}

// TestReadsWhatIsNeeded: what a query reads depends on what it returns. What is known to be long
// is not looked up for what a short term leads, nor twice to find that out; when nearly as many
// match as are wanted few more are read; and what was changed in other blocks is passed over.
func TestReadsWhatIsNeeded(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{Page: 64, Short: 3, Window: 4096})
	defer func() { require.NoError(t, b.engine.Close()) }()
	const entities, changed, blocks = 20_000, 3000, 40 // the newest of them, in so many blocks
	history := make([]entity.Block, 1+blocks)
	for i := range uint32(entities) {
		op := entity.Op{Kind: entity.Create, Key: entity.Key{byte(i), byte(i >> 8), 1}, OpIndex: i, BTL: 1000,
			NumericAttributes: map[string]uint64{"n": uint64(i)},
			StringAttributes:  map[string]string{"type": []string{"vote", "other"}[i%2], "of": string(rune('a' + i%2000))}}
		history[0].Ops = append(history[0].Ops, op)
		if i >= entities-changed {
			op.Kind = entity.Update
			block := &history[1+i%blocks]
			block.Ops = append(block.Ops, op)
		}
	}
	for i, block := range history {
		block.Number = uint64(1 + i)
		b.apply(true, block)
	}
	b.drain()
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	read := &tally{}
	v, err := b.layout.View(ctx, talliedView{r, read}, 1+blocks)
	require.NoError(t, err)
	var found []entity.Key
	ask := func(limit, want int, terms ...query.Expr) tally {
		*read, found = tally{}, nil
		for e, err := range v.Query(ctx, layout.Request{Expr: query.And{Terms: terms}, Limit: limit}) {
			require.NoError(t, err)
			found = append(found, e.Key)
		}
		require.Len(t, found, want)
		return *read
	}
	text := func(name, value string) query.Expr {
		return query.Compare{Name: name, Op: query.Equal, Value: query.Text(value)}
	}
	number := func(name string, op query.CompareOp, n uint64) query.Expr {
		return query.Compare{Name: name, Op: op, Value: query.Number(n)}
	}

	first := ask(50, 50, text("type", "vote"))
	require.Equal(t, 2, first.finds, "the value is long: %+v", first)
	votes := found
	again := ask(50, 50, text("type", "vote"))
	require.Equal(t, 1, again.finds, "%+v", again)
	led := ask(100, 10, text("type", "vote"), text("of", "c"))
	require.Equal(t, 1, led.finds, "%+v", led)

	notLess := func(than string) query.Expr {
		return query.Not{Term: query.Compare{Name: "type", Op: query.Less, Value: query.Text(than)}}
	}
	ask(50, 50, notLess(""))     // nothing is
	ask(50, 50, notLess("vote")) // a long range of few values
	require.Equal(t, votes, found)

	nearly := ask(100, 100, text("type", "vote"), number(entity.AttrOpIndex, query.NotEqual, entities-2))
	require.LessOrEqual(t, nearly.versions, 110, "%+v", nearly)

	window := ask(20, 20, number(entity.AttrLastModifiedAtBlock, query.LessOrEqual, 1))
	require.LessOrEqual(t, window.versions, 40, "%+v", window)
	wider := ask(20, 20, number(entity.AttrLastModifiedAtBlock, query.LessOrEqual, blocks))
	require.Zero(t, wider.finds, "what has something long in it is long: %+v", wider)

	last := entity.Block{Number: 2 + blocks, Ops: slices.Clone(history[0].Ops[entities-400:])}
	for i := range last.Ops {
		last.Ops[i].Kind = entity.Update
	}
	b.apply(true, last) // not merged
	after, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, after.Close()) }()
	v, err = b.layout.View(ctx, talliedView{after, read}, last.Number)
	require.NoError(t, err)
	logged := ask(50, 50, text("type", "vote"))
	require.LessOrEqual(t, logged.versions, 50, "what the log has is not looked for: %+v", logged)
}

// TestSupersededInLog: where an equality narrows down what is not merged, versions that later
// blocks of the log superseded or ended are not found.
func TestSupersededInLog(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	op := func(kind entity.Kind, n uint32, value string) entity.Op {
		return entity.Op{Kind: kind, Key: entity.Key{byte(n)}, OpIndex: n, BTL: 100, StringAttributes: map[string]string{"is": value}}
	}
	block := entity.Block{Number: 1}
	for i := range uint32(200) {
		block.Ops = append(block.Ops, op(entity.Create, i, "old"))
	}
	b.apply(true, block)
	b.apply(true, entity.Block{Number: 2, Ops: []entity.Op{op(entity.Update, 0, "new"), op(entity.Update, 1, "old"), op(entity.Delete, 2, "")}})
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	v, err := b.layout.View(ctx, r, 2)
	require.NoError(t, err)
	for value, want := range map[string]uint64{"old": 198, "new": 1} {
		n, err := v.Count(ctx, query.Compare{Name: "is", Op: query.Equal, Value: query.Text(value)})
		require.NoError(t, err)
		require.Equal(t, want, n, value)
	}
}

// TestAlternativesInLog: of many versions that are not merged an alternative finds those that any
// of its arms matches, also where one arm is a comparison of values and the other one is not.
func TestAlternativesInLog(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	const entities = 300 // more than are compared one by one
	block := entity.Block{Number: 1}
	for i := range uint32(entities) {
		block.Ops = append(block.Ops, entity.Op{
			Kind: entity.Create, Key: entity.Key{byte(i), byte(i >> 8)}, OpIndex: i, BTL: 100,
			StringAttributes: map[string]string{"name": fmt.Sprint("n", i)}, NumericAttributes: map[string]uint64{"n": uint64(i), "third": uint64(i % 3), "fifth": uint64(i % 5)},
		})
	}
	b.apply(true, block)
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	v, err := b.layout.View(ctx, r, 1)
	require.NoError(t, err)
	for text, want := range map[string]int{
		`name = "n7" || n >= 290`:               11,
		`n >= 290 || name = "n7"`:               11,
		`name = "n7" || name = "n8" || n < 5`:   7,
		`(name = "n7" || n >= 290) && n != 295`: 10,

		`third = 2 && fifth = 4 && n < 100`:                            6,
		`fifth IN (1, 4) && third = 2 && (third = 1 || n > 29)`:        36,
		`(third = 1 && fifth = 1 || third = 2 && fifth IN (2, 3))`:     60,
		`(third = 1 || missing = 1) && fifth = 4 && name = "n4"`:       1,
		`third = 1 && fifth = 1 && (missing = 1 || alsomissing = "1")`: 0,
	} {
		expr, err := query.Parse(text)
		require.NoError(t, err)
		got := 0
		for _, err := range v.Query(ctx, layout.Request{Expr: expr}) {
			require.NoError(t, err)
			got++
		}
		require.Equal(t, want, got, text)
	}
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

// TestPastIsSortedOnce: an entity that had one value in the past and has another now is found by
// both, and given once. Without an order, too, each is given.
func TestPastIsSortedOnce(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	const entities = 1500
	blocks := []entity.Block{{Number: 1}, {Number: 2}}
	for i := range uint32(entities) {
		for n := range blocks {
			blocks[n].Ops = append(blocks[n].Ops, entity.Op{Kind: []entity.Kind{entity.Create, entity.Update}[n], Key: entity.Key{byte(i), byte(i >> 8), 1},
				OpIndex: i, BTL: 1000, NumericAttributes: map[string]uint64{"n": uint64(i) + uint64(n)}})
		}
	}
	for _, block := range blocks {
		b.apply(true, block)
		b.drain()
	}
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	v, err := b.layout.View(ctx, r, 1)
	require.NoError(t, err)
	next := uint64(0)
	for e, err := range v.Query(ctx, layout.Request{Order: []layout.Order{{Name: "n", Kind: entity.Numeric}}, Attributes: true}) {
		require.NoError(t, err)
		require.Equal(t, next, e.NumericAttributes["n"])
		next++
	}
	require.EqualValues(t, entities, next)
	all, err := v.Count(ctx, nil)
	require.NoError(t, err)
	require.EqualValues(t, entities, all)
}

// slowView is a view on a slow disk. It keeps the rows that are read ahead.
type slowView struct {
	driver.Reader
	ahead map[string][]any // by table
}

func (q slowView) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	if strings.Contains(text, "FROM current_versions") {
		time.Sleep(20 * time.Millisecond)
	}
	return q.Reader.Query(ctx, text, args...)
}

func (q slowView) ReadAhead(_ context.Context, table string, ids []any) {
	q.ahead[table] = append(q.ahead[table], ids...)
}

// TestSlowRowsAreReadAhead: once rows have come from a disk, the rows of the next
// query are read ahead, by their ids and in a range.
func TestSlowRowsAreReadAhead(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	const entities, mine = 300, 20
	block := entity.Block{Number: 1}
	for i := range uint32(entities) {
		block.Ops = append(block.Ops, entity.Op{Kind: entity.Create, Key: entity.Key{byte(i), byte(i >> 8), 1}, OpIndex: i, BTL: 1000,
			Content: []byte{1}, NumericAttributes: map[string]uint64{"mine": uint64(i) % (entities / mine)}})
	}
	b.apply(true, block)
	b.drain()
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	ask := func(e query.Expr, limit int) map[string][]any {
		q := slowView{r, map[string][]any{}}
		v, err := b.layout.View(ctx, q, 1)
		require.NoError(t, err)
		for _, err := range v.Query(ctx, layout.Request{Expr: e, Limit: limit, Content: true}) {
			require.NoError(t, err)
		}
		return q.ahead
	}
	few := query.Compare{Name: "mine", Op: query.Equal, Value: query.Number(3)}
	ask(few, 0)
	ahead := ask(few, 0)
	require.Len(t, ahead["current_versions"], mine)
	require.Len(t, ahead["contents"], mine)
	ahead = ask(nil, 100)
	require.Len(t, ahead["current_versions"], 100)
	require.Contains(t, ahead["current_versions"], int64(entities-99))
}

// TestBoundsOfEnded: a comparison of sequences finds entities at a past block that
// have ended since, although the ids around theirs have no current version.
func TestBoundsOfEnded(t *testing.T) {
	ctx := context.Background()
	b := newRig(t, compact.Options{})
	defer func() { require.NoError(t, b.engine.Close()) }()
	const entities = 2000
	created, ended := entity.Block{Number: 1}, entity.Block{Number: 2}
	for i := range uint32(entities) {
		key := entity.Key{byte(i), byte(i >> 8), 1}
		created.Ops = append(created.Ops, entity.Op{Kind: entity.Create, Key: key, OpIndex: i, BTL: 1000})
		if i%1000 > 100 {
			ended.Ops = append(ended.Ops, entity.Op{Kind: entity.Delete, Key: key, OpIndex: i})
		}
	}
	b.apply(true, created, ended)
	b.drain()
	r, err := b.engine.Snapshot(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	v, err := b.layout.View(ctx, r, 1)
	require.NoError(t, err)
	for i := uint32(0); i < entities; i += 37 {
		n, err := v.Count(ctx, query.Compare{Name: entity.AttrSequence, Op: query.Equal, Value: query.Number(entity.MakeSequence(1, 0, i))})
		require.NoError(t, err)
		require.EqualValues(t, 1, n, "entity %d", i)
	}
}
