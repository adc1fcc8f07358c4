package sqlite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
)

func openEmpty(t *testing.T) *store.DB {
	db, err := store.Open(t.Context(), suite.Engine.URL(t.TempDir()), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// plans returns the steps of each statement of a graph's tables.
func plans(t *testing.T, db *store.DB, graph string) map[string][]string {
	schema, err := schemas.GraphTables(graph, "sqlite")
	require.NoError(t, err)
	snap, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer snap.Close()
	steps := map[string][]string{}
	for name, text := range schema.Statements {
		rows, err := snap.Query(t.Context(), "EXPLAIN QUERY PLAN "+text, slices.Repeat([]any{int64(1)}, strings.Count(text, "?"))...)
		require.NoError(t, err)
		for rows.Next() {
			var id, parent, unused int64
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			steps[name] = append(steps[name], step)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	return steps
}

// TestRebacPlans: no question reads all of anything, but for the few groups of a
// recursive query.
func TestRebacPlans(t *testing.T) {
	db := openEmpty(t)
	d, err := rebac.Generate(rebac.Small, 1)
	require.NoError(t, err)
	s, err := rebac.New(db)
	require.NoError(t, err)
	_, err = s.Ingest(t.Context(), d, 0)
	require.NoError(t, err)
	_, err = s.BuildClosure(t.Context())
	require.NoError(t, err)
	searches := 0
	for name, steps := range plans(t, db, "rebac") {
		if question, _, _ := strings.Cut(name, "_"); !slices.Contains([]string{"check", "list", "users"}, question) {
			continue
		}
		for _, step := range steps {
			switch words := strings.Fields(step); words[0] {
			case "SEARCH":
				searches++
			case "SCAN":
				require.Contains(t, []string{"below", "reach", "b", "x"}, words[1], "%s: %s", name, step)
			}
		}
	}
	require.Greater(t, searches, 12*3)
}

// TestSocialPlans: no check and no look-up reads the table from end to end.
func TestSocialPlans(t *testing.T) {
	db := openEmpty(t)
	g, err := social.New(social.MinRelationships, 1)
	require.NoError(t, err)
	s, err := social.NewStore(db)
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context(), g))
	all := plans(t, db, "social")
	for _, name := range []string{"check_user", "check_content", "check_interaction", "lookup_content", "lookup_subjects", "has"} {
		searches := 0
		for _, step := range all[name] {
			require.False(t, strings.HasPrefix(step, "SCAN "), "%s: %s", name, step)
			if strings.HasPrefix(step, "SEARCH ") {
				require.Contains(t, step, "USING PRIMARY KEY (object", name)
				searches++
			}
		}
		require.Positive(t, searches, name)
	}
}
