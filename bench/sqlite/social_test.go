package sqlite_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// fillSocial returns a store of a graph that is closed when the test ends.
func fillSocial(tb testing.TB, dir string, relationships, readers int) (*social.Store, *social.Oracle) {
	tb.Helper()
	g, err := social.New(relationships, seed)
	must(tb, err)
	must(tb, os.MkdirAll(dir, 0o755))
	s, err := social.NewStore(openAt(tb, dir, readers))
	must(tb, err)
	must(tb, s.Load(context.Background(), g))
	return s, social.NewOracle(g)
}

// openAt opens a new database that is closed when the test ends.
func openAt(tb testing.TB, dir string, readers int) *store.DB {
	tb.Helper()
	ctx := context.Background() // the test's ends before its clean-up
	db, err := store.Open(ctx, suite.Engine.URL(dir), &store.Options{Readers: readers})
	must(tb, err)
	tb.Cleanup(func() { must(tb, db.Close()) })
	return db
}

// TestSocial holds the engine against the oracle: questions beside writes to the same
// few objects of a small graph, then every kind of question about all of it, in which
// people have blocked each other by then. It ends by taking a relationship away behind the oracle's
// back, which must be seen.
func TestSocial(t *testing.T) {
	s, o := fillSocial(t, t.TempDir(), social.MinRelationships, 4)
	script := &social.Script{
		Name: "test", Phases: []social.Phase{{Rate: 500, Duration: 700 * time.Millisecond}},
		Connections: 4, Arrivals: "poisson", Active: 0.25, GiveUp: time.Minute,
		Steps: []social.Step{{Weight: 0.3, Lookup: "content", Limit: 20}, {Weight: 0.3, Lookup: "subjects"}},
	}
	for _, k := range social.Kinds {
		script.Steps = append(script.Steps, social.Step{Weight: 1, Check: k.String()})
	}
	steps := script.Steps
	for _, toggle := range social.Toggles {
		script.Steps = append(script.Steps, social.Step{Weight: 0.5, Write: toggle})
	}
	for _, script.Staleness = range []time.Duration{0, 20 * time.Millisecond} {
		out, err := social.Run(t.Context(), s, o, social.RunConfig{Script: script, Phase: script.Phases[0], Seed: seed})
		must(t, errors.Join(err, out.First))
		require.Equal(t, out.Scheduled, out.Count)
		require.Len(t, social.Sums(out), 3, "of checks, look-ups and writes")
	}
	const asked = 1500
	script.Steps, script.Active = steps, 1
	out, err := social.Run(t.Context(), s, o, social.RunConfig{Script: script, Seed: seed, Loop: bench.Times(asked)})
	must(t, errors.Join(err, out.First))
	require.Len(t, out.Kinds, len(steps))
	for i, k := range social.Kinds {
		says := map[int]bool{} // yes is one object
		for n := range asked {
			q := social.Question{Step: &steps[2+i], Viewer: social.NewObject(social.User, 1+n%20), Object: social.NewObject(k, 1+n/100)}
			says[len(o.Answer(q, o.Point()))] = true
		}
		require.Len(t, says, 2, "some may see %s, and some not", k)
	}
	require.Positive(t, o.Point())
	must(t, s.Verify(t.Context(), o))
	requireSeen(t, s, o)
}

// requireSeen takes the ownership of a piece of content away.
func requireSeen(t *testing.T, s *social.Store, o *social.Oracle) {
	ctx, content := t.Context(), social.NewObject(social.Content, 7)
	owner := o.Owner(content)
	must(t, s.Store.Write(ctx, func(ctx context.Context, tx driver.Tx) error {
		n, err := tx.Exec(ctx, s.Statements["delete"], int64(content), int64(social.Owner), int64(owner))
		require.EqualValues(t, 1, n)
		return err
	}))
	require.ErrorIs(t, s.Verify(ctx, o), bench.ErrMismatch)
	v, err := s.View(ctx, o)
	must(t, err)
	defer v.Close()
	for _, step := range []social.Step{{Check: "content"}, {Lookup: "content", Limit: 1}, {Lookup: "subjects"}} {
		q := social.Question{Step: &step, Viewer: owner, Object: content}
		got, err := v.Ask(ctx, q)
		must(t, err)
		require.ErrorIs(t, o.Judge(v.Span, q, got), bench.ErrMismatch)
	}
}
