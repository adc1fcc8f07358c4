package crashtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// TestCheckBites: any loss but that of whole steps is a violation: of a row, an
// index entry, a posting, one event of an append.
func TestCheckBites(t *testing.T) {
	for _, c := range []struct{ name, layout, damage, want string }{
		{"attribute", "arkiv", "DELETE FROM string_attributes WHERE rowid = (SELECT max(rowid) FROM string_attributes)", "string attribute"},
		{"payload", "arkiv", "DELETE FROM payloads WHERE rowid = (SELECT max(rowid) FROM payloads)", "without a payload"},
		{"block", "arkiv", "DELETE FROM varve_blocks WHERE block = (SELECT max(block) FROM varve_blocks)", "lost"},
		{"posting", "compact", "DELETE FROM postings", "posting"},
		{"event", EventsLayout, "DELETE FROM events WHERE position = (SELECT max(position) FROM events WHERE position < (SELECT max(position) FROM events))", "append"},
		{"term", EventsLayout, "DELETE FROM event_postings", "selects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cell := Cell{Engine: "sqlite", Layout: c.layout, Seed: 4, Dir: t.TempDir()}
			live := workerConfig{URL: cell.URL("store", "backlog", "1"), Layout: c.layout, Journal: filepath.Join(cell.Dir, "journal"), Seed: 4, Target: phaseReopen, After: 30, NoPrune: true}
			end, err := runWorker(t.Context(), live, &plan{phase: phaseReopen})
			require.NoError(t, err)
			require.True(t, end.killed)

			check := live
			check.CheckOnly = true
			end, err = runWorker(t.Context(), check, nil)
			require.NoError(t, err)
			require.Equal(t, exitDone, end.code, end.message)

			db, err := store.Open(t.Context(), live.URL, nil)
			require.NoError(t, err)
			tx, err := db.Engine().Begin(t.Context())
			require.NoError(t, err)
			n, err := tx.Exec(t.Context(), c.damage)
			require.NoError(t, err)
			require.NotZero(t, n)
			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, db.Close())

			end, err = runWorker(t.Context(), check, nil)
			require.NoError(t, err)
			require.Equal(t, exitViolation, end.code, end.message)
			require.Contains(t, end.message, c.want)
		})
	}
}
