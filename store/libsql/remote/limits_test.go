package remote

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// TestLargeResults: what does not fit into one answer of the server, of 256 KB here, is
// read all the same: checked, verified, copied and backed up.
func TestLargeResults(t *testing.T) {
	ctx := t.Context()
	for _, layout := range []string{"arkiv", "compact"} {
		t.Run(layout, func(t *testing.T) {
			db, es := openStore(t, newURL(t), layout)
			for n := range uint64(4) {
				b := entity.Block{Number: n + 1}
				for i := range 100 {
					b.Ops = append(b.Ops, entity.Op{Kind: entity.Create, OpIndex: uint32(i), Key: entity.Key{byte(n), byte(i)}, BTL: 1000, ContentType: "text/plain",
						Content: bytes.Repeat([]byte{byte(n), byte(i)}, 5000), StringAttributes: map[string]string{"kind": "large"}})
				}
				_, err := es.Apply(ctx, b)
				require.NoError(t, err)
			}
			w := tap(db.Engine())
			_, err := es.Verify(ctx)
			require.NoError(t, err)
			checked, err := db.Check(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, store.Sound, checked.Outcome)
			var backup bytes.Buffer
			_, err = db.Backup(ctx, &backup, nil)
			require.NoError(t, err)
			require.Contains(t, w.trips(), "/v3/cursor", "in parts")

			_, copied := openStore(t, newURL(t), "arkiv")
			_, err = copied.Import(ctx, es.History(ctx), nil)
			require.NoError(t, err)
			restored, err := store.Open(ctx, newURL(t), nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, restored.Close()) })
			_, err = restored.Restore(ctx, &backup, nil)
			require.NoError(t, err)
			again, err := restored.Entities(ctx, &store.EntityOptions{Layout: layout})
			require.NoError(t, err)
			want, err := es.Head(ctx)
			require.NoError(t, err)
			for _, other := range []*store.Entities{copied, again} {
				got, err := other.Head(ctx)
				require.NoError(t, err)
				require.Equal(t, want, got)
				_, err = other.Verify(ctx)
				require.NoError(t, err)
			}
		})
	}
}

// TestRowsInParts: rows that come in parts are all there and in order, beside the values
// of a transaction, and can be left in the middle.
func TestRowsInParts(t *testing.T) {
	ctx := t.Context()
	const many = "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5000) SELECT n, ? FROM t ORDER BY n"
	text := strings.Repeat("x", 100)
	e := mustOpen(t, newURL(t), driver.Options{})
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, createNumbers)
		require.NoError(t, tx.Insert(ctx, numbers, []any{int64(1)}))
		for _, all := range []bool{true, false, true} {
			rows, err := tx.Query(ctx, many, text)
			require.NoError(t, err)
			for n := int64(1); n <= 5000 && (all || n < 10); n++ {
				var got int64
				var beside string
				require.True(t, rows.Next())
				require.NoError(t, rows.Scan(&got, &beside))
				require.Equal(t, n, got)
				require.Equal(t, text, beside)
			}
			require.Equal(t, false, all && rows.Next())
			require.NoError(t, rows.Err())
			require.NoError(t, rows.Close())
			mustExec(t, tx, "UPDATE numbers SET n = n + 1")
		}
	})
	require.Equal(t, []int64{4}, selectColumn[int64](t, snapshot(t, e), "SELECT n FROM numbers"))
	rows, err := snapshot(t, e).Query(ctx, many, text)
	require.NoError(t, err)
	require.True(t, rows.Next())
	require.NoError(t, rows.Close())
}

// cutter ends answers in parts behind some of their entries, as a server or a proxy
// that stops does.
type cutter struct {
	*wire
	entries int
}

// RoundTrip implements http.RoundTripper.
func (c cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.wire.RoundTrip(r)
	if err != nil || r.URL.Path != "/v3/cursor" {
		return resp, err
	}
	defer resp.Body.Close()
	var kept bytes.Buffer
	lines := bufio.NewReader(resp.Body)
	for range c.entries {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		kept.Write(line)
	}
	resp.Body, resp.ContentLength = io.NopCloser(&kept), -1
	return resp, nil
}

// TestPartsThatEndEarly: an answer whose last entries are missing is an error, and
// not a shorter answer.
func TestPartsThatEndEarly(t *testing.T) {
	const many = "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 50000) SELECT n, ? FROM t ORDER BY n"
	e := mustOpen(t, newURL(t), driver.Options{})
	w := tap(e)
	e.link.client.Transport = cutter{w, 10}
	rows, err := snapshot(t, e).Query(t.Context(), many, strings.Repeat("x", 500))
	require.NoError(t, err)
	n := 0
	for rows.Next() {
		n++
	}
	require.Contains(t, w.trips(), "/v3/cursor", "in parts")
	require.Positive(t, n)
	require.ErrorIs(t, rows.Err(), io.ErrUnexpectedEOF)
	require.NoError(t, rows.Close())
}

// TestLongRows: a row that the server would refuse is refused here, and is not damage.
func TestLongRows(t *testing.T) {
	ctx := t.Context()
	pairs := &driver.Table{Name: "pairs", Columns: []driver.Column{{Name: "a", Type: driver.Blob}, {Name: "b", Type: driver.Blob}}}
	const create = "CREATE TABLE pairs (a BLOB, b BLOB)"
	e := mustOpen(t, newURL(t), driver.Options{})
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, create) })
	w := tap(e)
	for name, attempt := range map[string]func(tx driver.Tx) error{
		"insert": func(tx driver.Tx) error {
			return tx.Insert(ctx, pairs, []any{make([]byte, 3_000_000), make([]byte, 3_000_000)})
		},
		"exec": func(tx driver.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO pairs VALUES (?, x'')", make([]byte, 5_000_001))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := e.Begin(ctx)
			require.NoError(t, err)
			w.trips()
			err = attempt(tx)
			require.ErrorIs(t, err, driver.ErrUnsupported)
			require.ErrorContains(t, err, "max_row")
			require.Empty(t, w.trips(), "it is not sent")
			require.NoError(t, tx.Rollback())
		})
	}
	t.Run("found by the server", func(t *testing.T) {
		tx, err := e.Begin(ctx)
		require.NoError(t, err)
		defer tx.Rollback()
		_, err = tx.Exec(ctx, "INSERT INTO pairs VALUES (?, ?)", make([]byte, 3_000_000), make([]byte, 3_000_000))
		require.ErrorIs(t, err, driver.ErrUnsupported)
		require.ErrorContains(t, err, "max_row_size")
	})
	t.Run("a larger bound", func(t *testing.T) {
		raw := server(t).newURL(t, configuration{"durability_mode": "strong", "max_row_size": 20_000_000})
		e := mustOpen(t, raw+"&max_row=20000000", driver.Options{})
		write(t, e, func(tx driver.Tx) {
			mustExec(t, tx, create)
			require.NoError(t, tx.Insert(ctx, pairs, []any{make([]byte, 6_000_000), []byte("b")}))
		})
		require.Equal(t, [][]byte{make([]byte, 6_000_000)}, selectColumn[[]byte](t, snapshot(t, e), "SELECT a FROM pairs"))
	})
}

// TestDeepConditions: what the server's parsers do not take is unsupported, in theirs as in SQLite's.
func TestDeepConditions(t *testing.T) {
	e := mustOpen(t, newURL(t), driver.Options{})
	for _, depth := range []int{100, 200} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			_, err := snapshot(t, e).Query(t.Context(), "SELECT "+strings.Repeat("(", depth)+"1"+strings.Repeat(")", depth))
			require.ErrorIs(t, err, driver.ErrUnsupported)
			require.ErrorContains(t, err, "stack")
		})
	}
	depth := capabilities.SQLDepth
	require.Equal(t, []int64{1}, selectColumn[int64](t, snapshot(t, e), "SELECT "+strings.Repeat("(", depth)+"1"+strings.Repeat(")", depth)))
}

// TestSnapshotsCannotWrite: the server itself would let them.
func TestSnapshotsCannotWrite(t *testing.T) {
	e := mustOpen(t, newURL(t), driver.Options{})
	write(t, e, func(tx driver.Tx) { mustExec(t, tx, createNumbers) })
	view := snapshot(t, e)
	for _, text := range []string{
		"INSERT INTO numbers VALUES (1) RETURNING n", "WITH one AS (SELECT 1) INSERT INTO numbers SELECT * FROM one RETURNING n",
		"PRAGMA user_version = 5", "COMMIT",
	} {
		_, err := view.Query(t.Context(), text)
		require.ErrorIs(t, err, driver.ErrReadOnly, text)
	}
	require.Empty(t, selectColumn[int64](t, view, "SELECT n FROM numbers"))
	require.Empty(t, selectColumn[int64](t, snapshot(t, e), "SELECT n FROM numbers"))
}
