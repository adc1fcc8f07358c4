package guard_test

import (
	sqldriver "database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

func TestStatement(t *testing.T) {
	tests := []struct {
		text string
		n    int
		many bool
	}{
		{"", 0, false},
		{"SELECT ?, ?", 2, false},
		{"SELECT '?', \"?\", `?`, [?], ?", 1, false},
		{"SELECT 'it''s ?', ?", 1, false},
		{"SELECT 1 -- ?; SELECT 2", 0, false},
		{"SELECT 1 -- ?\n + ?", 1, false},
		{"SELECT /* ?; */ ?", 1, false},
		{"SELECT 1 - ? / ?", 2, false},
		{"SELECT 'open ?", 0, false},
		{"SELECT ';'", 0, false},
		{"SELECT 1;", 0, false},
		{"SELECT 1; \t\r\n;; -- end", 0, false},
		{"SELECT 1; SELECT 2", 0, true},
		{"SELECT 1;'x'", 0, true},
		{"SELECT 1; /* x */ ?", 0, true},
		{"CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; DELETE FROM u; END", 0, false},
		{"create temp trigger g AFTER INSERT ON t BEGIN DELETE FROM t; END;", 0, false},
		{"CREATE TABLE trigger_free (x); DROP TABLE t", 0, true},
	}
	for _, tc := range tests {
		t.Run(tc.text, func(t *testing.T) {
			n, err := guard.Statement(tc.text)
			if tc.many {
				require.ErrorIs(t, err, driver.ErrUnsupported)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.n, n)
		})
	}
}

func TestReads(t *testing.T) {
	for _, text := range []string{
		"SELECT 1", " select/**/1", "-- x\nSELECT 1", "VALUES (1)", "EXPLAIN DELETE FROM t", "PRAGMA synchronous",
		"WITH a AS (SELECT 1), b (x) AS NOT MATERIALIZED (VALUES (1)) SELECT replace('a', 'b', 'c')",
		"WITH RECURSIVE _a AS (SELECT 1) SELECT 1", "WITH \"delete\" AS (SELECT 1) SELECT 1",
	} {
		require.True(t, guard.Reads(text), text)
	}
	for _, text := range []string{
		"", ";", "(SELECT 1)", "INSERT INTO t VALUES (1) RETURNING k", "delete from t", "REPLACE INTO t SELECT 1", "COMMIT", "ATTACH x AS y",
		"WITH a AS (SELECT 1) DELETE FROM t", "WITH a AS (SELECT 1) INSERT INTO t SELECT 1", "PRAGMA user_version = 7", "PRAGMA user_version(7)",
		"CREATE TABLE t AS SELECT 1",
	} {
		require.False(t, guard.Reads(text), text)
	}
}

func FuzzStatement(f *testing.F) {
	f.Add("SELECT '?;' -- x\n, ?; SELECT [")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := guard.Statement(text)
		require.LessOrEqual(t, n, strings.Count(text, "?"))
		if err != nil {
			require.Contains(t, text, ";")
		}
	})
}

func TestArgument(t *testing.T) {
	for _, v := range []any{int64(1), []byte{0, 255}, "text", ""} {
		require.NoError(t, guard.Argument(&sqldriver.NamedValue{Value: v}))
	}
	for _, v := range []any{"a\x00", "\xff"} {
		require.ErrorIs(t, guard.Argument(&sqldriver.NamedValue{Value: v}), driver.ErrUnsupported)
	}
	require.ErrorIs(t, guard.Argument(&sqldriver.NamedValue{Value: true}), sqldriver.ErrSkip)
}

func TestRow(t *testing.T) {
	columns := func() []string { return []string{"a", "b"} }
	require.NoError(t, guard.Row(columns, []sqldriver.Value{int64(1), nil}))
	err := guard.Row(columns, []sqldriver.Value{"x", time.Time{}})
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.ErrorContains(t, err, `"b"`)
}

func TestSentinel(t *testing.T) {
	for message, want := range map[string]error{
		"database is locked":                       driver.ErrLocked,
		"database table is locked: t":              driver.ErrLocked,
		"UNIQUE constraint failed: t.a":            driver.ErrConflict,
		"database disk image is malformed":         driver.ErrCorrupt,
		"database or disk is full":                 driver.ErrDiskFull,
		"attempt to write a readonly database":     driver.ErrReadOnly,
		"no such table: database is locked":        nil,
		"no such column: UNIQUE constraint failed": nil,
	} {
		require.Equal(t, want, guard.Sentinel(message), message)
	}
}
