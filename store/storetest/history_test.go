package storetest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// TestHistoryText writes a step in which every field has a value, and reads it.
func TestHistoryText(t *testing.T) {
	op := on("a", opCreate(9, text("n\x00", "\x00é\""), number("n", 1<<63), content("text/plain", "\xff"), owner(bob)))
	e := entity.Entity{Key: op.Key, Sequence: 1 << 63, NumericAttributes: op.NumericAttributes}
	whole := step{
		Do: "load", At: store.Head, To: 1, Layout: "arkiv", ExtendAdds: true, Params: map[string]string{"backlog": "1"}, Held: 1, Cut: 2,
		Changes: 3, End: "broken", Given: 4, Keys: []entity.Key{op.Key, {}}, Truncate: true, Way: "backup",
		Blocks: []entity.Block{{Number: 7, Hash: entity.Hash{1}, Time: 5, Ops: []entity.Op{op, on("b", opExpire)}}},
		Questions: []model.Question{{
			Expr:  query.And{Terms: []query.Expr{query.All{}, query.Not{Term: query.Glob{Name: "a b", Pattern: "*\x00"}}}},
			Order: []store.Order{{Name: "n", Kind: num, Desc: true}}, Limit: 1, Pages: 2, After: &e,
		}},
	}
	fields := reflect.ValueOf(whole)
	for i := range fields.NumField() {
		require.False(t, fields.Field(i).IsZero(), "give %s a value", fields.Type().Field(i).Name)
	}
	history := []step{{Do: "open"}, whole}
	require.Equal(t, history, parseHistory[step](t, "# a comment\n"+formatHistory(history)))
}

// TestReduce: of a long history remains what makes it fail, here a deletion of
// one entity and a rewind after it.
func TestReduce(t *testing.T) {
	history := []step{{Do: "open", Params: map[string]string{"memory": "64MiB", "backlog": "1"}}}
	for n := range uint64(40) {
		block := chained(newBlock(n, on("a", opCreate(9, v("x"), content("c", "c"))), on("b", opDelete), on("c", opUpdate(9))))
		history = append(history, step{Do: "apply", Blocks: []entity.Block{block, {Number: n}}}, step{Do: "rewind", At: n},
			step{Do: "ask", Questions: []model.Question{{Expr: query.Not{Term: query.All{}}}, {}}})
	}
	tried := 0
	fails := func(history []step) bool {
		tried++
		require.Equal(t, "open", history[0].Do, "the store is opened")
		deleted := slices.IndexFunc(history, func(s step) bool {
			return slices.ContainsFunc(s.Blocks, func(b entity.Block) bool {
				return b.Number > 10 && slices.ContainsFunc(b.Ops, func(op entity.Op) bool { return op.Kind == entity.Delete })
			})
		})
		return deleted >= 0 && history[0].Params["backlog"] == "1" &&
			slices.ContainsFunc(history[deleted:], func(s step) bool { return s.Do == "rewind" })
	}
	reduced := reduce(history, func() bool { return true }, fails)
	require.Equal(t, `{"Do":"open", "Params":{"backlog":"1"}}
{"Do":"apply", "Blocks":[{"Number":39, "Ops":[{"Kind":"delete", "Key":"0x6200000000000000000000000000000000000000000000000000000000000000"}]}]}
{"Do":"rewind"}
`, formatHistory(reduced))
	require.Less(t, tried, 200)
}

// TestTry: a trial that fails, or panics, ends with its message and what it was
// to clean up, and fails nothing else.
func TestTry(t *testing.T) {
	for want, f := range map[string]func(t testing.TB){
		"":                func(testing.TB) {},
		"expected error":  func(t testing.TB) { require.Error(t, nil, "expected error") },
		"panic: no value": func(testing.TB) { panic("no value") },
	} {
		dir := ""
		failure := try(t, func(t testing.TB) {
			dir = t.TempDir()
			f(t)
		})
		require.Contains(t, failure, want)
		require.Equal(t, want == "", failure == "")
		require.NoDirExists(t, dir)
	}
}
