package sqlite_test

import (
	"flag"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/gobench"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
)

var rebacFlags = gobench.RegisterRebacFlags(flag.CommandLine)

func BenchmarkRebac(b *testing.B) { gobench.RunRebac(b, suite.Engine, rebacFlags) }

func TestRebac(t *testing.T) { gobench.CheckRebac(t, suite.Engine, 0) }

// scanned matches a step of a plan that reads all of something: harmless for the
// few groups of a recursive query, and for nothing else.
var scanned = regexp.MustCompile(`^SCAN (\w+)`)

// TestRebacPlans: no question reads a whole table.
func TestRebacPlans(t *testing.T) {
	db, err := store.Open(t.Context(), suite.Engine.URL(t.TempDir()), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	d, err := rebac.Generate(rebac.Small, 1)
	require.NoError(t, err)
	s, err := rebac.New(db)
	require.NoError(t, err)
	_, err = s.Ingest(t.Context(), d, 0)
	require.NoError(t, err)
	_, err = s.BuildClosure(t.Context())
	require.NoError(t, err)
	schema, err := schemas.GraphTables("rebac", "sqlite")
	require.NoError(t, err)
	snap, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer snap.Close()
	searches := 0
	for name, text := range schema.Statements {
		if !strings.HasPrefix(name, "check_") && !strings.HasPrefix(name, "list_") && !strings.HasPrefix(name, "users_") {
			continue
		}
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = int64(1)
		}
		rows, err := snap.Query(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		require.NoError(t, err)
		for rows.Next() {
			var id, parent, unused int64
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			if strings.HasPrefix(step, "SEARCH ") {
				searches++
			}
			if m := scanned.FindStringSubmatch(step); m != nil {
				require.Contains(t, []string{"below", "reach", "b", "x"}, m[1], "%s: %s", name, step)
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	require.Greater(t, searches, 12*3)
}
