package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// RunQuery checks the query language as each layout answers it: what matches,
// in which order, and how pages of it fit together.
func RunQuery(t *testing.T, h Harness) {
	suites := []struct {
		name string
		run  func(*testing.T, Harness, string)
	}{
		{"language", runLanguage},
		{"values", runComparisons},
		{"glob", runGlobs},
		{"limits", runLimits},
		{"order", runOrder},
		{"cursor", runCursor},
		{"use", runUse},
	}
	for i, layout := range h.layouts() {
		t.Run(layout, func(t *testing.T) {
			for _, s := range suites {
				if s.name == "limits" && i > 0 {
					continue // they are the engine's, not the layout's
				}
				t.Run(s.name, func(t *testing.T) { s.run(t, h, layout) })
			}
		})
	}
}

// names returns the names of entities made with keyOf, in the order given.
func names(list []*store.Entity) []string {
	found := make([]string, len(list))
	for i, e := range list {
		found[i] = strings.TrimRight(string(e.Key[:]), "\x00")
	}
	return found
}

// set returns the letters of names in order, as tables of queries write them.
func set(list []*store.Entity) string {
	return strings.Join(sortedBy(names(list), func(s string) string { return s }), "")
}

// all is what the snapshot that was asked last shows.
var all struct {
	of   *store.Snapshot
	list []*store.Entity
}

// checkQuery checks that a query finds the entities named, counts as many,
// yields newest first, and agrees with the meaning of its tree.
func checkQuery(t testing.TB, s *store.Snapshot, q query.Expr, want string) {
	t.Helper()
	list := results(t, s, q, nil)
	require.Equal(t, want, set(list), "%s", q)
	n := countOf(t, s, q)
	require.EqualValues(t, len(list), n, "count of %s", q)
	for i := 1; i < len(list); i++ {
		require.Greater(t, list[i-1].Sequence, list[i].Sequence, "order of %s", q)
	}
	if all.of != s {
		all.of, all.list = s, results(t, s, nil, nil)
	}
	var means []*store.Entity
	for _, e := range all.list {
		if query.Match(q, e) {
			means = append(means, e)
		}
	}
	requireSame(t, means, list, "%s", q)
}

func parse(t testing.TB, text string) query.Expr {
	t.Helper()
	q, err := query.Parse(text)
	require.NoError(t, err, text)
	return q
}

// compared returns a comparison, which says the same as one that is parsed.
func compared(name string, op query.CompareOp, v query.Value) query.Expr {
	return query.Compare{Name: name, Op: op, Value: v}
}

// queried is a store with the entities that the language is tried on.
//
//	block  what
//	   10  z lives until 15
//	 1000  a, b: nodes; pending
//	 1001  c: a vote; d: nothing
//	 1003  b becomes available; e: empty and zero values
//	 1004  a goes to carol; f lives until 1006
//	 1006  g, offline
//	 1007  g is deleted, c extended until 1107
func queried(t testing.TB, h Harness, layout string) *ledger {
	l := newLedger(t, h, layout)
	const long = 1 << 40
	for _, b := range []store.Block{
		newBlock(10, on("z", opCreate(5, text("type", "early"), number("cpu", 1)))),
		newBlock(1000,
			on("a", opCreate(long, owner(alice), text("type", "node"), text("status", "pending"), number("cpu", 4), text("size", "8"))),
			on("b", opCreate(long, owner(bob), text("type", "node"), text("status", "pending"), number("cpu", 8)))),
		newBlock(1001,
			on("c", opCreate(50, owner(alice), text("type", "vote"), number("cpu", 16), number("size", 8))),
			on("d", opCreate(long, owner(bob)))),
		newBlock(1003,
			on("b", opUpdate(long, owner(bob), text("type", "node"), text("status", "available"), number("cpu", 8))),
			on("e", opCreate(long, owner(carol), text("type", ""), number("cpu", 0), text("size", ""), number("size", 0)))),
		newBlock(1004,
			on("a", opOwner(carol)),
			on("f", opCreate(2, owner(alice), text("type", "node"), text("status", "offline"), number("cpu", 2)))),
		newBlock(1006, on("g", opCreate(long, owner(bob), text("type", "node"), text("status", "offline"), number("cpu", 3)))),
		newBlock(1007, on("g", opDelete), on("c", opExtend(100))),
		newBlock(1010),
	} {
		l.applyBlocks(t, b)
	}
	return l
}

// runLanguage tries queries as text. At is the block to ask at, 0 the head. Each is tried
// once more with a limit and beside an equality that all entities satisfy, since a layout
// finds matches in other ways then.
func runLanguage(t *testing.T, h Harness, layout string) {
	l := queried(t, h, layout)
	for i, c := range languageCases() {
		t.Run(fmt.Sprintf("%d %s", i, c.text), func(t *testing.T) {
			q := parse(t, c.text)
			if c.at == 0 {
				c.at = store.Head
			}
			beside := query.And{Terms: []query.Expr{q, parse(t, "$creator in ("+alice.String()+" "+bob.String()+" "+carol.String()+")")}}
			l.view(t, c.at, func(s *store.Snapshot) {
				checkQuery(t, s, q, c.want)
				for _, q := range []query.Expr{q, beside} {
					require.Equal(t, c.want, set(results(t, s, q, &store.QueryOptions{Limit: 100})), "%s, with a limit", q)
				}
			})
		})
	}
}
