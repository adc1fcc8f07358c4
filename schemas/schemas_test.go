package schemas

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var dialects = []string{"sqlite", "duckdb", "postgres"}

// TestEntityLayouts checks that each layout is whole in each dialect, and has
// the indexes that its name promises.
func TestEntityLayouts(t *testing.T) {
	indexes := map[string]int{"arkiv": 13, "arkiv-analyzed": 13, "arkiv-ordered": 11, "arkiv-pruned": 6, "simple": 6, "bare": 0, "arkiv-0": 0, "arkiv-7": 7, "arkiv-13": 13}
	for _, name := range EntityLayouts() {
		for _, dialect := range dialects {
			l, err := Entities(name, dialect)
			require.NoError(t, err)
			if name == "compact" {
				continue // see TestCompactLayout
			}
			require.Len(t, l.Tables, 3)
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

// TestLayoutNames: a URL names layouts of both kinds in one list, so no name is of
// both, and none has a comma.
func TestLayoutNames(t *testing.T) {
	entities := EntityLayouts()
	for _, dialect := range dialects {
		for _, name := range EventLayouts(dialect) {
			require.NotContains(t, entities, name)
			require.NotContains(t, name, ",")
		}
	}
	for _, name := range entities {
		require.NotContains(t, name, ",")
	}
}

// TestCompactLayout: the dialects have the same tables, and each the statements
// that are written apart for it.
func TestCompactLayout(t *testing.T) {
	var tables, statements []string
	for _, dialect := range dialects {
		l, err := Entities("compact", dialect)
		require.NoError(t, err)
		require.True(t, l.Temporal)
		require.Len(t, l.Indexes, 1)
		names := []string{}
		for _, text := range l.Tables {
			name, _, _ := strings.Cut(strings.TrimPrefix(text, "CREATE TABLE "), " ")
			names = append(names, name)
		}
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

// TestArkivOnDuckDB: the indexes are those of the other dialects but for their
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
