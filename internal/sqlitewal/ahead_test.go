package sqlitewal

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"
)

// TestPagesOfRows: exactly the pages of the rows are read ahead, however many
// levels a table has; and none of a file that was replaced.
func TestPagesOfRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "varve.db")
	db, err := sql.Open("sqlite3", path)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	ids := []int64{math.MinInt64, -1, 0, 1, math.MaxInt64}
	for len(ids) < 5000 {
		ids = append(ids, int64(random.Uint64())>>random.IntN(64))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	text := func(id int64) string { return fmt.Sprintf("row <%d>", id) }
	_, err = db.Exec("PRAGMA page_size = 512; CREATE TABLE other (a); CREATE TABLE t (id INTEGER PRIMARY KEY, a); BEGIN")
	require.NoError(t, err)
	for _, i := range random.Perm(len(ids)) {
		_, err = db.Exec("INSERT INTO t VALUES (?, ?)", ids[i], text(ids[i]))
		require.NoError(t, err)
	}
	_, err = db.Exec("COMMIT")
	require.NoError(t, err)
	var root uint32
	require.NoError(t, db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = 't'").Scan(&root))
	require.NoError(t, db.Close())

	a, err := openShared(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.close()) }()
	for _, n := range []int{1, 2, 40, len(ids)} {
		var some []int64
		for _, i := range random.Perm(len(ids))[:n] {
			some = append(some, ids[i])
		}
		slices.Sort(some)
		found := map[int64]bool{}
		pages := a.pages(root, 512, some)
		require.Len(t, slices.Compact(slices.Clone(pages)), len(pages))
		for _, p := range pages {
			before, content := len(found), a.page(p, 512)
			for _, id := range some {
				if bytes.Contains(content, []byte(text(id))) {
					found[id] = true
				}
			}
			require.Greater(t, len(found), before, "no row is on page %d", p)
		}
		require.Len(t, found, n)
	}
	require.Empty(t, a.pages(root, 1024, ids[:1]))
	for n := range uint32(400) {
		a.pages(n, 512, ids) // whatever is there
		page := make([]byte, 512)
		for i := range page {
			page[i] = byte(random.Uint32())
		}
		child(page, ids[n])
	}
}
