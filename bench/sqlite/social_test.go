package sqlite_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
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
	s, err := social.Load(context.Background(), openAt(tb, dir, readers), g)
	must(tb, err)
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

// TestSocial compares the engine with the oracle: checks during writes to the
// same few objects of a small graph, then every kind of check about all of it,
// after people have blocked each other. It ends by removing a relationship from
// the store alone, which must be noticed.
func TestSocial(t *testing.T) {
	s, o := fillSocial(t, t.TempDir(), social.MinRelationships, 4)
	mix := []social.Step{}
	for _, k := range social.Kinds {
		mix = append(mix, social.Step{Name: "check-" + k.String(), Weight: 2})
	}
	checks := mix
	for _, toggle := range social.Toggles {
		mix = append(mix, social.Step{Name: "write-" + toggle, Weight: 1})
	}
	run := func(asked int64, cfg social.Config) *pace.Outcome {
		cfg.Workers, cfg.N, cfg.Seed = 4, asked, seed
		out, err := social.Run(t.Context(), s, o, cfg)
		must(t, errors.Join(err, out.First))
		require.Equal(t, asked, out.Count)
		require.Len(t, out.Kinds, len(cfg.Mix))
		return out
	}
	require.Len(t, social.Sums(run(700, social.Config{Mix: mix, Active: 0.25})), 2, "of checks and writes")
	v, err := s.View(t.Context(), o)
	must(t, err)
	must(t, v.Close())
	require.Positive(t, v.To, "writes")
	const asked = 1500
	run(asked, social.Config{Mix: checks, Active: 1})
	for _, k := range social.Kinds {
		says := map[bool]bool{}
		for n := range asked {
			q := social.Question{Viewer: social.NewObject(social.User, 1+n%20), Object: social.NewObject(k, 1+n/100)}
			says[o.Answer(q, v.To)] = true
		}
		require.Len(t, says, 2, "some may see %s, and some not", k)
	}
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
	q := social.Question{Viewer: owner, Object: content}
	may, err := v.Ask(ctx, q)
	must(t, err)
	require.ErrorIs(t, o.Judge(v.Span, q, may), bench.ErrMismatch)
}
