package eav_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/layout/eav"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	_ "github.com/varvedb/varve/store/sqlite"
)

// entities is how many there are: more than are counted of a leading term.
const entities = 1500

// fleet writes three blocks: entities with an attribute that is true for 5/6,
// 1/6, 1/60 or three of them, updates of some of them, and deletions.
func fleet(t testing.TB, layout string) (*store.DB, *store.Entities) {
	ctx := context.Background()
	db, err := store.Open(ctx, "sqlite://"+t.TempDir()+"/varve.db?durability=unsafe", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: layout})
	require.NoError(t, err)
	blocks := [3]entity.Block{{Number: 1}, {Number: 2}, {Number: 3}}
	for i := range entities {
		blocks[0].Ops = append(blocks[0].Ops, operation(entity.Create, i, i))
		switch i % 50 {
		case 7, 8, 9:
			blocks[1].Ops = append(blocks[1].Ops, operation(entity.Update, i, i/2))
		case 10:
			blocks[1].Ops = append(blocks[1].Ops, entity.Op{Kind: entity.Delete, Key: keyOf(i)})
		}
		if i%100 == 8 {
			blocks[2].Ops = append(blocks[2].Ops, operation(entity.Update, i, i/3))
		}
	}
	for _, b := range blocks {
		for i := range b.Ops {
			b.Ops[i].OpIndex = uint32(i)
		}
		_, err := ents.Apply(ctx, b)
		require.NoError(t, err)
	}
	return db, ents
}

func keyOf(i int) (key entity.Key) {
	copy(key[:], fmt.Sprintf("%d-%04d", i*7919%10, i))
	return key
}

// operation sets the attributes that follow from n.
func operation(kind entity.Kind, i, n int) entity.Op {
	op := entity.Op{
		Kind: kind, Key: keyOf(i), BTL: 1000,
		StringAttributes:  map[string]string{"type": "workload", "status": []string{"up", "down", "lost"}[n%3], "all": "same"},
		NumericAttributes: map[string]uint64{"cpu": uint64(n % 10), "ram": uint64(n)},
	}
	if n%6 == 0 {
		op.StringAttributes["type"] = "node"
	}
	if n%60 == 0 {
		op.StringAttributes["vm"] = fmt.Sprintf("gpu_%d", n%120)
	}
	if n%1000 == 1 {
		op.StringAttributes["rare"] = "yes"
		op.NumericAttributes["rare"] = uint64(n)
	}
	return op
}

// terms draws a comparison, true of few or of many.
func terms() *rapid.Generator[query.Expr] {
	return rapid.Custom(func(t *rapid.T) query.Expr {
		texts := []string{`type = "node"`, `type = "workload"`, `status = "up"`, `status in ("up", "lost", "up")`, `all = "same"`,
			`vm = "gpu_0"`, `rare = "yes"`, `rare = 1001`, `type ~ "no*"`, `vm ~ "gpu*"`, `status ~ "*o*"`, `status != "up"`,
			`status !~ "u*"`, `cpu >= 4`, `cpu < 8`, `cpu != 3`, `cpu not in (1, 2)`, `ram < 40`, `ram > 100`, `none = "x"`, `*`,
			`$lastModifiedAtBlock >= 2`, `$lastModifiedAtBlock in (1, 3)`, `$owner ~ "0x*"`,
			"$key in (" + keyOf(1).String() + ", " + keyOf(60).String() + ", " + keyOf(108).String() + ")"}
		return parse(rapid.SampledFrom(texts).Draw(t, "term"))
	})
}

func parse(text string) query.Expr {
	e, err := query.Parse(text)
	if err != nil {
		panic(err)
	}
	return e
}

func exprs(height int) *rapid.Generator[query.Expr] {
	if height == 0 {
		return terms()
	}
	return rapid.Custom(func(t *rapid.T) query.Expr {
		inner := exprs(height - 1)
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return inner.Draw(t, "inner")
		case 1:
			return query.Not{Term: inner.Draw(t, "not")}
		case 2:
			return query.Or{Terms: rapid.SliceOfN(inner, 2, 3).Draw(t, "or")}
		}
		return query.And{Terms: rapid.SliceOfN(inner, 2, 4).Draw(t, "and")}
	})
}

// TestAnswers: whichever term leads, if one does, the answer is that of
// query.Match, in the order asked for.
func TestAnswers(t *testing.T) {
	for _, name := range []string{"arkiv", "arkiv-ordered", "arkiv-pruned", "arkiv-7", "simple"} {
		t.Run(name, func(t *testing.T) {
			_, ents := fleet(t, name)
			first := uint64(3)
			if ents.Temporal() {
				first = 1
			}
			snaps, all := map[uint64]*store.Snapshot{}, map[uint64][]*entity.Entity{}
			for block := first; block <= 3; block++ {
				snap, err := ents.At(t.Context(), block)
				require.NoError(t, err)
				defer snap.Close()
				snaps[block], all[block] = snap, list(t, snap, nil, nil)
				require.NotEmpty(t, all[block])
			}
			rapid.Check(t, func(t *rapid.T) {
				block, q := rapid.Uint64Range(first, 3).Draw(t, "block"), exprs(3).Draw(t, "query")
				if op := rapid.SampledFrom([]string{"", "", ">", ">=", "<", "<=", "="}).Draw(t, "bound"); op != "" {
					q = query.And{Terms: []query.Expr{q, parse("$lastModifiedAtBlock " + op + " 2")}}
				}
				checkAnswer(t, snaps[block], q, all[block])
			})
		})
	}
}

// checkAnswer compares the answers to a query with what matches of all entities,
// which come newest first.
func checkAnswer(t *rapid.T, snap *store.Snapshot, q query.Expr, all []*entity.Entity) {
	want := []entity.Key{}
	for _, e := range all {
		if query.Match(q, e) {
			want = append(want, e.Key)
		}
	}
	n, err := snap.Count(context.Background(), q)
	require.NoError(t, err)
	require.EqualValues(t, len(want), n, "%s", q)
	opts := store.QueryOptions{Limit: 10}
	for page := range 2 {
		got := list(t, snap, q, &opts)
		require.Equal(t, want[min(page*10, len(want)):min(page*10+10, len(want))], keys(got), "%s", q)
		if len(got) < opts.Limit {
			break
		}
		var err error
		opts.After, err = snap.Cursor(got[len(got)-1], &opts)
		require.NoError(t, err)
	}

	if rapid.Bool().Draw(t, "all") { // else sorted, which takes as long
		require.Equal(t, want, keys(list(t, snap, q, &store.QueryOptions{Parts: store.Metadata})), "%s", q)
		return
	}
	order := []store.Order{{Name: "ram", Kind: entity.Numeric}}
	sorted := list(t, snap, q, &store.QueryOptions{Order: order, Parts: store.Attributes})
	require.Len(t, sorted, len(want), "%s", q)
	require.True(t, slices.IsSortedFunc(sorted, func(a, b *entity.Entity) int {
		return int(a.NumericAttributes["ram"]) - int(b.NumericAttributes["ram"])
	}), "%s", q)
}

func list(t require.TestingT, snap *store.Snapshot, q query.Expr, opts *store.QueryOptions) (found []*entity.Entity) {
	for e, err := range snap.Query(context.Background(), q, opts) {
		require.NoError(t, err)
		found = append(found, e)
	}
	return found
}

func keys(list []*entity.Entity) []entity.Key {
	keys := make([]entity.Key, len(list))
	for i, e := range list {
		keys[i] = e.Key
	}
	return keys
}

// TestPlans: with Arkiv's SQL every payload is looked at, and each condition is looked up
// by the version. On arkiv-ordered the leading term finds the payloads.
func TestPlans(t *testing.T) {
	const (
		scan    = "SCAN e"
		texts   = "SEARCH a EXISTS USING INDEX string_attributes_pk (entity_key=? AND key=? AND from_block=?)"
		numbers = "SEARCH a EXISTS USING INDEX numeric_attributes_pk (entity_key=? AND key=? AND from_block=?)"
		either  = "SEARCH a USING INDEX string_attributes_pk (entity_key=? AND key=? AND from_block=?)"
		byKey   = "SEARCH e USING INDEX payloads_pk (entity_key=? AND from_block=?)"
		byText  = "SEARCH w USING INDEX string_attributes_kv_temporal_idx (key=? AND value=? AND from_block>? AND from_block<?)"
	)
	type steps map[string][]string
	cases := map[string]steps{
		`type = "workload" && rare = "yes"`:                 {"arkiv": {scan, texts, texts}, "arkiv-ordered": {byKey, byText, texts, texts}},
		`type = "workload" && all = "same" && vm = "gpu_0"`: {"arkiv": {scan, texts, texts, texts}, "arkiv-ordered": {byKey, byText, texts, texts, texts}},
		`cpu >= 2 && ram > 5 && rare = "yes"`:               {"arkiv": {scan, numbers, numbers, texts}, "arkiv-ordered": {byKey, byText, numbers, numbers, texts}},
		`rare = "yes" && !(type = "node" || status = "up")`: {"arkiv": {scan, either, either, texts}, "arkiv-ordered": {byKey, byText, either, either, texts}},
		`type = "node" || status = "up"`:                    {"arkiv": {scan, either, either}, "arkiv-ordered": {scan, either, either}},
		`cpu >= 2 && cpu < 3`:                               {"arkiv": {scan, numbers, numbers}, "arkiv-ordered": {scan, numbers, numbers}},
		`all = "same" && $key = ` + keyOf(5).String():       {"arkiv": {scan, texts, texts}, "arkiv-ordered": {byKey, byText, texts, texts}},
	}
	for _, name := range []string{"arkiv", "arkiv-analyzed", "arkiv-ordered", "arkiv-pruned"} {
		db, _ := fleet(t, name)
		for text, want := range cases {
			t.Run(name+"/"+text, func(t *testing.T) {
				steps := want[name]
				if steps == nil {
					steps = want["arkiv"]
				}
				require.Equal(t, steps, plan(t, db, name, parse(text)))
			})
		}
	}
}

// TestManyConditions: of many conditions SQLite plans few as joins, because it
// searches for their best order.
func TestManyConditions(t *testing.T) {
	db, _ := fleet(t, "arkiv")
	many := query.And{Terms: slices.Repeat([]query.Expr{parse("cpu != 3")}, 100)}
	joins := slices.DeleteFunc(plan(t, db, "arkiv", many), func(step string) bool { return !strings.Contains(step, " EXISTS ") })
	require.Len(t, joins, 16)
}

// plan returns how SQLite searches payloads and attributes for a query, without
// the tables that its order joins.
func plan(t *testing.T, db *store.DB, name string, q query.Expr) (lines []string) {
	schema, err := schemas.Entities(name, string(driver.SQLite))
	require.NoError(t, err)
	l := eav.New(schema, driver.SQLite, db.Engine().Capabilities())
	r, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	text, args, err := eav.CompileQuery(t.Context(), l, r, 3, layout.Request{Expr: q})
	require.NoError(t, err)
	rows, err := r.Query(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		for _, word := range []string{"SEARCH e ", "SCAN e", "SEARCH a ", "SCAN a", "SEARCH w ", "SCAN w"} {
			if strings.HasPrefix(detail, word) {
				lines = append(lines, detail)
			}
		}
	}
	require.NoError(t, rows.Err())
	return lines
}
