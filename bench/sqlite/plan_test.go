package sqlite_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/layout/eav"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
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
		steps[name] = plan(t, snap, text)
	}
	return steps
}

// plan returns the steps of a statement.
func plan(t *testing.T, q driver.Querier, text string) (steps []string) {
	rows, err := q.Query(t.Context(), "EXPLAIN QUERY PLAN "+text, slices.Repeat([]any{int64(1)}, strings.Count(text, "?"))...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int64
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	require.NoError(t, rows.Err())
	return steps
}

// recorder is a querier that keeps the statements it is given.
type recorder struct {
	driver.Querier
	texts map[string]bool
}

func (r *recorder) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	r.texts[text] = true
	return r.Querier.Query(ctx, text, args...)
}

// TestMixPlans: on arkiv-ordered no kind of the mixes reads a table or an index from end
// to end, and none that has a limit sorts in the database.
func TestMixPlans(t *testing.T) {
	const name = "arkiv-ordered"
	s := openMendoza(t, name)
	schema, err := schemas.Entities(name, string(driver.SQLite))
	require.NoError(t, err)
	l := eav.New(schema, driver.SQLite, s.DB.Engine().Capabilities())
	snap, err := s.DB.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer snap.Close()
	kinds := map[string]map[bool]*recorder{} // with a limit and without
	for _, reads := range s.reads {
		stream, random := reads.Stream(mix.StreamOptions{}), rand.New(rand.NewPCG(1, 0))
		for range 200 {
			op := stream(random)
			if kinds[op.Kind] == nil {
				kinds[op.Kind] = map[bool]*recorder{}
			}
			rec := kinds[op.Kind][op.Limit > 0]
			if rec == nil {
				rec = &recorder{snap, map[string]bool{}}
				kinds[op.Kind][op.Limit > 0] = rec
			}
			answer(t, l, rec, min(op.Block, reads.Head()), op)
		}
	}
	require.Len(t, kinds, 17)
	for kind, recorders := range kinds {
		for limited, rec := range recorders {
			for text := range rec.texts {
				for _, step := range plan(t, snap, text) {
					if limited {
						require.NotContains(t, step, "TEMP B-TREE", "%s: %s", kind, text)
					}
					require.NotRegexp(t, `^SCAN (a|e|s|w)\b`, step, "%s: %s", kind, text)
				}
			}
		}
	}
}

// answer carries out an operation as a snapshot would.
func answer(t *testing.T, l *eav.Layout, q driver.Querier, at uint64, op mix.Op) {
	view, err := l.View(t.Context(), q, at)
	require.NoError(t, err)
	if op.Get {
		_, err := view.Get(t.Context(), op.Key)
		require.NoError(t, err)
		return
	}
	for _, err := range view.Query(t.Context(), layout.Request{Expr: op.Expr, Limit: op.Limit, Content: op.Parts&store.Content != 0}) {
		require.NoError(t, err)
	}
}

// TestRebacPlans: no question reads all of anything, but for the few groups of a recursive query.
func TestRebacPlans(t *testing.T) {
	db := openEmpty(t)
	d, err := rebac.Generate(rebac.Small, 1)
	require.NoError(t, err)
	_, _, err = rebac.Load(t.Context(), db, d)
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
	_, err = social.Load(t.Context(), db, g)
	require.NoError(t, err)
	all := plans(t, db, "social")
	for _, name := range []string{"check_user", "check_content", "check_interaction", "has"} {
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
