package schemas

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRebac: the dialects have the same tables with the same columns, and the same statements.
func TestRebac(t *testing.T) {
	var tables []string
	for _, dialect := range dialects {
		r, err := GraphTables("rebac", dialect)
		require.NoError(t, err)
		var heads []string
		for _, text := range r.Tables {
			for line := range strings.Lines(strings.TrimPrefix(text, "CREATE TABLE ")) {
				if name := strings.Fields(line)[0]; name != "PRIMARY" && name[0] != ')' {
					heads = append(heads, name)
				}
			}
		}
		if tables == nil {
			tables = heads
		}
		require.Equal(t, tables, heads, dialect)
		require.Len(t, r.Tables, 9)
		delete(r.Statements, "begin_read") // a dialect's preparation of a read view
		require.Len(t, r.Statements, 12+5, "checks, listings of both kinds, each by two closures; the rest")
		for _, index := range r.Indexes {
			require.NotEmpty(t, index.Serves, index.Name)
		}
	}
	_, err := GraphTables("rebac", "oracle")
	require.Error(t, err)
}
