package schemas

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each dialect has the table and every statement; checks are one statement or one for each object.
func TestSocialGraph(t *testing.T) {
	for _, dialect := range dialects {
		s, err := GraphTables("social", dialect)
		require.NoError(t, err)
		require.Len(t, s.Tables, 1)
		require.Empty(t, s.Indexes)
		for _, name := range []string{
			"check_user", "check_content", "check_interaction",
			"has", "insert", "delete", "count", "analyze",
		} {
			require.NotEmpty(t, s.Statements[name], "%s, %s", dialect, name)
		}
		require.Equal(t, dialect == "duckdb", s.Statements["facts"] != "")
	}
	_, err := GraphTables("social", "oracle")
	require.Error(t, err)
}
