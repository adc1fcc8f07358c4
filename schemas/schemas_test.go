package schemas

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var dialects = []string{"sqlite", "duckdb", "postgres"}

// TestEntityLayouts checks that each layout is whole in each dialect, and has the indexes that its name promises.
func TestEntityLayouts(t *testing.T) {
	indexes := map[string]int{"arkiv": 13, "arkiv-analyzed": 13, "arkiv-columnar": 1, "arkiv-ordered": 11, "arkiv-pruned": 6, "simple": 6, "bare": 0, "arkiv-0": 0, "arkiv-7": 7, "arkiv-13": 13}
	for _, name := range EntityLayouts() {
		for _, dialect := range dialects {
			l, err := Entities(name, dialect)
			require.NoError(t, err)
			if name == "compact" {
				continue // see TestCompactLayout
			}
			require.Len(t, made(l), 3)
			if n, known := indexes[name]; known {
				require.Len(t, l.Indexes, n, name)
			}
			for _, index := range l.Indexes {
				require.NotEmpty(t, index.Serves, index.Name)
				require.Contains(t, index.SQL, index.Name)
			}
			for _, s := range []string{"get", "live", "content", "ends", "prune_payloads", "openings", "check_payloads"} {
				require.Contains(t, l.Statements, s)
				require.False(t, strings.HasSuffix(l.Statements[s], ";"))
			}
			require.Equal(t, l.Temporal, l.Statements["closings"] != "")
		}
	}
}

// made returns the tables that a layout makes.
func made(l Layout) (names []string) {
	for _, text := range l.Tables {
		if rest, ok := strings.CutPrefix(text, "CREATE TABLE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return names
}

// TestCompactLayout: the dialects have the same tables, and each the statements that are written apart for it.
func TestCompactLayout(t *testing.T) {
	var tables, statements []string
	for _, dialect := range dialects {
		l, err := Entities("compact", dialect)
		require.NoError(t, err)
		require.True(t, l.Temporal)
		if dialect == "duckdb" {
			require.Len(t, l.Indexes, 1)
		} else {
			require.Len(t, l.Indexes, 2)
		}
		names := made(l)
		if tables == nil {
			tables, statements = names, slices.Sorted(maps.Keys(l.Statements))
		}
		require.Equal(t, tables, names, dialect)
		require.Equal(t, statements, slices.Sorted(maps.Keys(l.Statements)), dialect)
	}
}

func TestUnknownLayout(t *testing.T) {
	for _, name := range []string{"", "arkiv-14", "arkiv-07", "arkiv-x", "nonsense"} {
		_, err := Entities(name, "sqlite")
		require.ErrorContains(t, err, "known are", name)
	}
	_, err := Entities("arkiv", "oracle")
	require.Error(t, err)
}

// TestArkivOnDuckDB: the indexes are the other dialects' indexes but for their
// direction.
func TestArkivOnDuckDB(t *testing.T) {
	for _, name := range []string{"arkiv", "arkiv-ordered"} {
		want, err := Entities(name, "sqlite")
		require.NoError(t, err)
		got, err := Entities(name, "duckdb")
		require.NoError(t, err)
		for i := range want.Indexes {
			require.Equal(t, strings.ReplaceAll(want.Indexes[i].SQL, " DESC", ""), got.Indexes[i].SQL)
		}
	}
}

func TestMetaTables(t *testing.T) {
	for _, dialect := range dialects {
		m, err := MetaTables(dialect)
		require.NoError(t, err)
		require.Len(t, m.Tables, 2)
		for _, s := range []string{"meta_exists", "other_tables", "head", "insert_block", "block_range"} {
			require.Contains(t, m.Statements, s)
		}
	}
}

// TestSpread: a table is spread by a column that its primary key and each of its unique indexes have, which Citus
// asks for, and all of a layout by columns of one type, so that their shards lie together.
func TestSpread(t *testing.T) {
	call := regexp.MustCompile(`^SELECT create_distributed_table\('(\w+)', '(\w+)', colocate_with => '(\w+)'\)$`)
	for _, name := range EntityLayouts() {
		for _, dialect := range []string{"sqlite", "duckdb"} {
			l, err := Entities(name, dialect)
			require.NoError(t, err)
			require.Empty(t, l.Spread)
		}
		l, err := Entities(name, "postgres")
		require.NoError(t, err)
		require.Equal(t, name == "simple", len(l.Spread) == 0, name)
		tables, types, spread := map[string]string{}, map[string]bool{}, 0
		for _, text := range slices.Concat(l.Tables, l.Spread) {
			if table, columns, ok := strings.Cut(strings.TrimPrefix(text, "CREATE TABLE "), " "); ok && strings.HasPrefix(text, "CREATE TABLE ") {
				tables[table] = columns
			}
			m := call.FindStringSubmatch(text)
			if m == nil {
				require.NotContains(t, text, "create_distributed_table")
				continue
			}
			spread++
			columns, column := tables[m[1]], m[2]
			require.NotEmpty(t, columns, "%s: no table %s", name, m[1])
			kind := regexp.MustCompile(`\n\s+` + column + ` (\w+)`).FindStringSubmatch(columns)
			require.NotNil(t, kind, "%s: table %s has no column %s", name, m[1], column)
			types[kind[1]] = true
			if _, key, ok := strings.Cut(columns, "\n    PRIMARY KEY ("); ok {
				require.Contains(t, key, column)
			} else if before, _, ok := strings.Cut(columns, " PRIMARY KEY"); ok {
				require.True(t, strings.HasSuffix(before, " "+column+" "+kind[1]), "%s: primary key of %s", name, m[1])
			}
			for _, index := range l.Indexes {
				if strings.Contains(index.SQL, " ON "+m[1]+" ") && index.Unique {
					require.Contains(t, index.SQL, column, index.Name)
				}
			}
		}
		if name != "simple" {
			require.GreaterOrEqual(t, spread, 4, name)
			require.Len(t, types, 1, name)
		}
	}
}
