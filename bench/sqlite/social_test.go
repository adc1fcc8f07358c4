package sqlite_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/gobench"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
)

var socialFlags = gobench.RegisterSocialFlags(flag.CommandLine)

func TestSocial(t *testing.T)      { gobench.CheckSocial(t, suite.Engine) }
func BenchmarkSocial(b *testing.B) { gobench.RunSocial(b, suite.Engine, socialFlags) }

// TestSocialPlans: no check and no look-up reads the table from end to end.
func TestSocialPlans(t *testing.T) {
	db, err := store.Open(t.Context(), suite.Engine.URL(t.TempDir()), nil)
	require.NoError(t, err)
	defer db.Close()
	g, err := social.New(social.MinRelationships, 1)
	require.NoError(t, err)
	s, err := social.NewStore(db)
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context(), g))
	sql, err := schemas.GraphTables("social", "sqlite")
	require.NoError(t, err)
	r, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	for _, name := range []string{"check_user", "check_content", "check_interaction", "lookup_content", "lookup_subjects", "has"} {
		text := sql.Statements[name]
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = int64(1)
		}
		rows, err := r.Query(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		require.NoError(t, err)
		var searches int
		for rows.Next() {
			var id, parent, unused int64
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			require.False(t, strings.HasPrefix(detail, "SCAN "), "%s: %s", name, detail)
			if strings.HasPrefix(detail, "SEARCH ") {
				require.Contains(t, detail, "USING PRIMARY KEY (object", name)
				searches++
			}
		}
		require.NoError(t, rows.Close())
		require.Positive(t, searches, name)
	}
}
