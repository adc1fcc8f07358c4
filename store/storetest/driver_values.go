package storetest

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

var (
	driverInts  = []int64{0, 1, -1, 255, math.MaxInt64, math.MinInt64, 1<<53 + 1}
	driverUints = []uint64{0, 1, 255, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}
	driverTexts = []string{
		"", " ", "a", "A", "b", "ab", "a ", "Z", "z", "é", "e\u0301", "日本", "\uffee", "😀", "12", "2", "1e3", "true", "NULL",
		"it's", `"quoted"`, `back\slash`, "100%", "under_score", "?", "$1", "line\nbreak", "\t", "0x00", strings.Repeat("long ", 100),
	}
	driverDates = []string{"2024-01-01", "2024-01-01 10:00:00", "2024-01-01T10:00:00Z", "10:00:00"}
	driverBlobs = [][]byte{{}, {0}, {0, 0}, []byte("text"), {0xff, 0xfe}, {0x80}, bytes.Repeat([]byte{0, 1, 2, 0xff}, 1<<18)}
)

// comparisons are the operators of queries, as functions of the result of
// cmp.Compare.
var comparisons = []struct {
	sql   string
	holds func(order int) bool
}{
	{"=", func(o int) bool { return o == 0 }},
	{"<>", func(o int) bool { return o != 0 }},
	{"<", func(o int) bool { return o < 0 }},
	{"<=", func(o int) bool { return o <= 0 }},
	{">", func(o int) bool { return o > 0 }},
	{">=", func(o int) bool { return o >= 0 }},
}

// runDriverValues: values are read as they were stored, and compare and sort as
// in Go.
func runDriverValues(t *testing.T, h Harness) {
	e := h.open(t, h.NewURL(t), nil).Engine()
	t.Run("int", func(t *testing.T) { testValues(t, e, "ints", driver.Int, driverInts, cmp.Compare[int64]) })
	t.Run("uint", func(t *testing.T) { testValues(t, e, "uints", driver.Uint, driverUints, cmp.Compare[uint64]) })
	t.Run("text", func(t *testing.T) { testValues(t, e, "texts", driver.Text, driverTexts, cmp.Compare[string]) })
	t.Run("blob", func(t *testing.T) { testValues(t, e, "blobs", driver.Blob, driverBlobs, bytes.Compare) })
	parts[driver.Engine]{
		{"text like dates", testDates},
		{"text with NUL", testTextNUL},
		{"scan", testScan},
		{"many statements", testManyStatements},
	}.run(t, e)
}

// newColumn makes a table of one column, v.
func newColumn(t testing.TB, e driver.Engine, name string, typ driver.Type) *driver.Table {
	t.Helper()
	return newTable(t, e, false, &driver.Table{Name: name, Columns: []driver.Column{{Name: "v", Type: typ}}})
}

// testValues inserts values by Exec and by Insert and selects them.
func testValues[T any](t *testing.T, e driver.Engine, name string, typ driver.Type, values []T, compare func(a, b T) int) {
	table := newColumn(t, e, name, typ)
	inTx(t, e, func(tx driver.Tx) {
		for i, v := range values {
			if i%2 == 0 {
				insert(t, tx, table, v)
			} else {
				require.EqualValues(t, 1, exec(t, tx, "INSERT INTO "+name+" (v) VALUES (?)", v))
			}
		}
		testComparisons(t, tx, name, values, compare)
	})
	inView(t, e, func(q driver.Querier) { testComparisons(t, q, name, values, compare) })
}

func testComparisons[T any](t *testing.T, q driver.Querier, name string, values []T, compare func(a, b T) int) {
	t.Helper()
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, compare)
	require.Equal(t, sorted, selectColumn[T](t, q, "SELECT v FROM "+name+" ORDER BY v"))
	descending := slices.Clone(sorted)
	slices.Reverse(descending)
	require.Equal(t, descending, selectColumn[T](t, q, "SELECT v FROM "+name+" ORDER BY v DESC"))
	for _, v := range values {
		for _, op := range comparisons {
			var want []T
			for _, other := range sorted {
				if op.holds(compare(other, v)) {
					want = append(want, other)
				}
			}
			got := selectColumn[T](t, q, "SELECT v FROM "+name+" WHERE v "+op.sql+" ? ORDER BY v", v)
			require.Equal(t, len(want), len(got), "v %s %.60v", op.sql, v)
			require.Equal(t, want, got, "v %s %.60v", op.sql, v)
		}
		require.Len(t, selectColumn[T](t, q, "SELECT v FROM "+name+" WHERE v IN (?, ?)", v, values[0]),
			1+min(1, abs(compare(v, values[0]))))
	}
}

func abs(n int) int { return max(n, -n) }

// testDates: text that looks like a date is text. An engine that cannot read
// such text declares the gap, returns an error and no other value, and can read
// the text as bytes.
func testDates(t *testing.T, e driver.Engine) {
	if !hasGap(e, "text-date") {
		testValues(t, e, "dates", driver.Text, driverDates, cmp.Compare[string])
		return
	}
	table := newColumn(t, e, "dates", driver.Text)
	inTx(t, e, func(tx driver.Tx) {
		for _, v := range driverDates {
			insert(t, tx, table, v)
		}
	})
	inView(t, e, func(q driver.Querier) {
		for _, v := range driverDates {
			got, err := tryColumn[string](q, "SELECT v FROM dates WHERE v = ?", v)
			require.True(t, err != nil || slices.Equal(got, []string{v}), "%q was read as %q", v, got)
			require.Equal(t, [][]byte{[]byte(v)}, selectColumn[[]byte](t, q, "SELECT CAST(v AS BLOB) FROM dates WHERE v = ?", v))
		}
	})
}

// testTextNUL: text with U+0000 is stored exactly, or refused before it is
// written.
func testTextNUL(t *testing.T, e driver.Engine) {
	values := []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00b", "a\x01"}
	if e.Capabilities().TextNUL {
		testValues(t, e, "nuls", driver.Text, values, cmp.Compare[string])
		return
	}
	table := newColumn(t, e, "nuls", driver.Text)
	tx := begin(t, e)
	err := tx.Insert(context.Background(), table, []any{"a", "a\x00b"})
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.NoError(t, tx.Rollback())

	tx = begin(t, e)
	refuses(t, driver.ErrUnsupported)(tx.Exec(context.Background(), "INSERT INTO nuls (v) VALUES (?)", "a\x00b"))
	require.NoError(t, tx.Rollback())
	requireCount(t, e, table, 0)
}

// testScan: Scan fills every type of destination, and bytes belong to the
// caller.
func testScan(t *testing.T, e driver.Engine) {
	table := newTable(t, e, false, &driver.Table{Name: "scans", Columns: []driver.Column{
		{Name: "i", Type: driver.Int}, {Name: "u", Type: driver.Uint}, {Name: "s", Type: driver.Text}, {Name: "b", Type: driver.Blob},
	}})
	inTx(t, e, func(tx driver.Tx) {
		insert(t, tx, table, 1, uint64(1), "one", []byte("first"), 2, uint64(1<<63), "two", []byte("again"))
	})
	r := snapshot(t, e)
	rows := must(r.Query(context.Background(), "SELECT i, u, s, b, i = 2, s FROM scans ORDER BY i"))(t)
	var i int64
	var u uint64
	var s string
	var is bool
	var first, second, asBytes []byte
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&i, &u, &s, &first, &is, &asBytes))
	require.Equal(t, []any{int64(1), uint64(1), "one", false, "one"}, []any{i, u, s, is, string(asBytes)})
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&i, &u, &s, &second, &is, &asBytes))
	require.Equal(t, []any{int64(2), uint64(1 << 63), "two", true, "two"}, []any{i, u, s, is, string(asBytes)})
	require.Equal(t, "first", string(first), "bytes must not change when the next row is read")
	clear(second)
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	require.Equal(t, "again", string(selectColumn[[]byte](t, r, "SELECT b FROM scans WHERE i = 2")[0]))

	rows = must(r.Query(context.Background(), "SELECT i FROM scans"))(t)
	require.True(t, rows.Next())
	require.NoError(t, rows.Close(), "rows may be closed before their end")
	_, err := r.Query(context.Background(), "SELECT no_such_column FROM scans")
	require.Error(t, err)
}

// testManyStatements runs more statements than an engine keeps prepared.
func testManyStatements(t *testing.T, e driver.Engine) {
	inView(t, e, func(q driver.Querier) {
		for round := range 2 {
			for i := range 600 {
				sql := "SELECT i + " + strings.Repeat("1 + ", i%30) + strings.Repeat("2 + ", i/30) + "0 FROM scans WHERE i = ?"
				require.EqualValues(t, 1+i%30+2*(i/30), selectColumn[int64](t, q, sql, 1)[0], "round %d", round)
			}
		}
	})
}
