package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// RunCompact checks on the layout compact what readers see of blocks that are not merged,
// of blocks that are, of both, and of a store whose tables were damaged.
func RunCompact(t *testing.T, h Harness) {
	t.Run("log", func(t *testing.T) { testCompactLog(t, h) })
	t.Run("damage", func(t *testing.T) { testCompactDamage(t, h) })
	t.Run("old tables", func(t *testing.T) { testCompactOldTables(t, h) })
	t.Run("no reader", func(t *testing.T) { testCompactNoReader(t, h) })
	t.Run("rolled back", func(t *testing.T) { testCompactRolledBack(t, h) })
	if h.Checks > 0 {
		return // RunQuery and RunDifferential ask for the same
	}
	h.NewURL = withBacklog(h.NewURL, smallBacklog)
	t.Run("order", func(t *testing.T) { runOrder(t, h, "compact") })
	t.Run("cursor", func(t *testing.T) { runCursor(t, h, "compact") })
}

// smallBacklog is a limit on what is put off with which tests meet every state of a merge:
// between blocks, between its steps, and with blocks that do the work themselves.
const smallBacklog = 3

// manyBlocks makes n entities and changes some of them in each block.
func manyBlocks(n, perBlock int) []store.Block {
	var blocks []store.Block
	for at := 0; at < n; at += perBlock {
		var ops []store.Op
		for i := at; i < min(at+perBlock, n); i++ {
			ops = append(ops, on(fmt.Sprintf("e%d", i), opCreate(1000+uint64(i), owner(store.Address{byte(i % 5)}),
				text("group", fmt.Sprint(i%7)), text("unique", fmt.Sprint("u", i)), number("n", uint64(i%11)), content("t", fmt.Sprint(i)))))
		}
		for i := at % 13; i < at; i += 13 {
			ops = append(ops, on(fmt.Sprintf("e%d", i), opUpdate(1000, text("group", "changed"), number("n", uint64(at)))))
		}
		blocks = append(blocks, newBlock(uint64(firstBlock+1+at), ops...))
	}
	return blocks
}

// logQueries are answered from sets, by comparing, and by both.
var logQueries = []string{
	`group = "3"`, `group = "changed" && n > 100`, `group in ("1", "2", "changed") && unique ~ "u1*"`, `unique = "u77"`,
	`group = "3" || group = "changed"`, `group = "3" || n < 4`, `!(group = "3")`, `group != "3"`, `group not in ("3", "4")`,
	`n >= 3 && n < 7`, `unique ~ "u?7"`, `unique !~ "u1*"`, `$owner = 0x0300000000000000000000000000000000000000`,
	`$lastModifiedAtBlock > 300`, `$lastModifiedAtBlock >= 150 && $lastModifiedAtBlock < 350`, `$expiration < 1200`, `nothing = 1`, `!(nothing = 1) && group = "5"`, `*`,
	`unique = "u1" && group = "1" && n = 1`, `!(group = "1" && n = 1)`, `!(unique ~ "u*9" || n = 2)`, `group ~ "*"`,
	`unique in (` + everyOther(300) + `)`, `unique not in (` + everyOther(600) + `) && n in (0 1 5 50 150)`,
}

// everyOther lists every other of n unique values twice over, the last first.
func everyOther(n int) string {
	var list strings.Builder
	for i := 0; i < 2*n; i += 2 {
		fmt.Fprintf(&list, `"u%d" `, (2*n-2-i)%n)
	}
	return list.String()
}

// testCompactLog asks the same of a view of the log alone, of views while it is
// merged, and of the tables alone.
func testCompactLog(t *testing.T, h Harness) {
	blocks := manyBlocks(300, 50)
	h.NewURL = withBacklog(h.NewURL, 100_000)
	l := newLedger(t, h, "compact", blocks...)
	unmerged := l.at(t, store.Head)
	for range 2 {
		_, err := l.ents.Verify(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.ents.Settle(t.Context()))
	}
	merged := l.at(t, store.Head)
	requireSame(t, everything(t, unmerged), everything(t, merged))
	for _, s := range []*store.Snapshot{unmerged, merged} {
		for _, text := range logQueries {
			checkMeaning(t, s, parse(t, text))
		}
	}
	for _, b := range blocks[2:4] {
		l.view(t, b.Number, func(s *store.Snapshot) {
			for _, text := range logQueries {
				checkMeaning(t, s, parse(t, text))
			}
		})
	}
}

func withBacklog(newURL func(testing.TB) string, n int) func(testing.TB) string {
	return func(t testing.TB) string { return withParams(t, newURL(t), "backlog", fmt.Sprint(n)) }
}

// checkMeaning compares what a query finds with what it means.
func checkMeaning(t testing.TB, s *store.Snapshot, q query.Expr) {
	t.Helper()
	var want []*store.Entity
	for _, e := range results(t, s, nil, nil) {
		if query.Match(q, e) {
			want = append(want, e)
		}
	}
	requireSame(t, want, results(t, s, q, nil), "%s at %d", q, s.Block())
	n := countOf(t, s, q)
	require.EqualValues(t, len(want), n, "count of %s at %d", q, s.Block())
	order := []store.Order{{Name: "n", Kind: entity.Numeric}}
	first := results(t, s, q, &store.QueryOptions{Limit: 5})
	requireSame(t, want[:min(5, len(want))], first, "%s with a limit", q)
	sorted := results(t, s, q, &store.QueryOptions{Order: order, Limit: 7})
	require.Len(t, sorted, min(7, len(want)))
}

// testCompactDamage: what the tables say twice is compared.
func testCompactDamage(t *testing.T, h Harness) {
	for name, c := range map[string]struct{ sql, want string }{
		"a set":         {"DELETE FROM postings", "postings are not those"},
		"a past set":    {"DELETE FROM postings WHERE low >= ?", "is in no posting"},
		"a key":         {"DELETE FROM entity_keys", "its key does not lead"},
		"a payload":     {"DELETE FROM contents WHERE no = 3", "its payload 3 is missing"},
		"a version":     {"DELETE FROM current_versions WHERE id = 5", "current versions, recorded are"},
		"a row of data": {"UPDATE current_versions SET data = ? WHERE id = 5", "torn"},
		"an end":        {"UPDATE closed_versions SET to_block = to_block + 1", "have digest"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, h, "compact", manyBlocks(150, 10)...)
			require.NoError(t, l.ents.Settle(t.Context()))
			_, err := l.ents.Verify(t.Context())
			require.NoError(t, err)
			var args []any
			switch name {
			case "a row of data":
				args = append(args, []byte{1, 2, 3})
			case "a past set": // its attribute has the highest bit
				args = append(args, []byte{0x80})
			}
			write(t, l.db, func(tx driver.Tx) error {
				n, err := tx.Exec(t.Context(), c.sql, args...)
				require.Positive(t, n)
				return err
			})
			_, err = l.ents.Verify(t.Context())
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// testCompactOldTables: a store whose tables are of an older version is refused by name.
func testCompactOldTables(t *testing.T, h Harness) {
	for _, format := range []string{"1", "2"} {
		refuseOldTables(t, h, format)
	}
}

func refuseOldTables(t *testing.T, h Harness, format string) {
	url := withParams(t, h.NewURL(t), "layout", "compact")
	db := h.open(t, url, nil)
	entitiesOf(t, db, store.EntityOptions{})
	write(t, db, func(tx driver.Tx) error {
		n, err := tx.Exec(t.Context(), "DELETE FROM varve_meta WHERE name = 'checksum'")
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		n, err = tx.Exec(t.Context(), "UPDATE varve_meta SET value = '"+format+"' WHERE name = 'format'")
		require.EqualValues(t, 1, n)
		return err
	})
	require.NoError(t, db.Close())
	_, err := h.open(t, url, nil).Entities(t.Context(), store.EntityOptions{})
	require.ErrorIs(t, err, store.ErrLayout)
	require.ErrorContains(t, err, fmt.Sprintf("format %q", format))
	require.ErrorContains(t, err, "export the store with the program that wrote it")
}

func write(t testing.TB, db *store.DB, f func(tx driver.Tx) error) {
	t.Helper()
	tx := begin(t, db.Engine())
	require.NoError(t, f(tx))
	require.NoError(t, tx.Commit(context.Background()))
}

// testCompactRolledBack: a load that is given up in the middle of a transaction
// leaves nothing that a later block is taken for, though the same numbers, names
// and tips come again.
func testCompactRolledBack(t *testing.T, h Harness) {
	for _, backlog := range []int{1, 100_000} {
		h.NewURL = withBacklog(h.NewURL, backlog)
		l := newLedger(t, h, "compact")
		l.apply(t, on("a", opCreate(1000, text("first", "1"))))
		blocks := manyBlocks(60, 10)
		for i := range blocks {
			blocks[i].Number += 50
		}
		for i := 1; i < len(blocks); i++ {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := l.ents.Load(ctx, func(yield func(store.Block, error) bool) {
				for n, b := range blocks {
					if n == i {
						cancel()
					}
					if !yield(b, nil) {
						return
					}
				}
				cancel()
				yield(store.Block{}, context.Canceled)
			}, store.LoadOptions{Changes: 1 << 20})
			require.ErrorIs(t, err, context.Canceled)
			cancel()
			other := newBlock(l.head+1, on(fmt.Sprint("x", i), opCreate(1000, text(fmt.Sprint("name", i), "x"), text("group", "3"))))
			if i%2 == 0 {
				l.applyBlocks(t, other)
			}
			l.view(t, store.Head, func(s *store.Snapshot) { checkMeaning(t, s, parse(t, `group = "3"`)) })
		}
		_, err := l.ents.Verify(t.Context())
		require.NoError(t, err)
	}
}

// testCompactNoReader: what was put off is done while the caller holds every
// reader.
func testCompactNoReader(t *testing.T, h Harness) {
	rawURL := withParams(t, h.NewURL(t), "layout", "compact", "readers", "1", "backlog", "1000")
	db := h.open(t, rawURL, nil)
	ents := entitiesOf(t, db, store.EntityOptions{})
	held := snapshotAt(t, ents, store.Head)
	for _, b := range manyBlocks(60, 10) {
		_, err := ents.Apply(t.Context(), b)
		require.NoError(t, err)
	}
	require.NoError(t, ents.Settle(t.Context()))
	require.Empty(t, everything(t, held))
	require.NoError(t, held.Close())
	s := snapshotAt(t, ents, store.Head)
	defer s.Close()
	require.Len(t, everything(t, s), 60)
}
