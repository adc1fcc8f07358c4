package postgres

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// delays returns the cost delays of a table and of its long values.
func delays(t *testing.T, rawURL, table string) string {
	return pgtest.Exec(t, rawURL, `SELECT concat_ws(' ', c.reloptions::text, t.reloptions::text)
FROM pg_class AS c LEFT JOIN pg_class AS t ON t.oid = c.reltoastrelid
WHERE c.oid = '`+table+`'::regclass`)
}

const (
	tuned = "{autovacuum_vacuum_cost_delay=0,autovacuum_vacuum_scale_factor=0.05} {autovacuum_vacuum_cost_delay=0,autovacuum_vacuum_scale_factor=0.05}"
	reset = "ALTER TABLE contents RESET (autovacuum_vacuum_cost_delay, autovacuum_vacuum_scale_factor, toast.autovacuum_vacuum_cost_delay, toast.autovacuum_vacuum_scale_factor)"
)

func openStore(t *testing.T, rawURL string, opts *store.Options) {
	t.Helper()
	db, err := store.Open(t.Context(), rawURL, opts)
	require.NoError(t, err)
	_, err = db.Entities(t.Context(), nil)
	require.NoError(t, err)
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	if opts == nil || !opts.ReadOnly {
		_, err = evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

// TestVacuumSettings: the tables of a store, and the tables of their long
// values, have settings with which autovacuum keeps up, also in a store of an
// older version once it was opened for writing. The owner's settings stay, and
// a user without the right to set them can open the store, too.
func TestVacuumSettings(t *testing.T) {
	rawURL := pgtest.NewURL(t)
	openStore(t, rawURL+"&layout=compact", nil)
	for _, table := range []string{"contents", "block_log", "postings", "current_versions", "closed_versions", "events", "event_postings"} {
		require.Equal(t, tuned, delays(t, rawURL, table), table)
	}

	pgtest.Exec(t, rawURL, reset)
	openStore(t, rawURL, &store.Options{ReadOnly: true})
	require.Empty(t, delays(t, rawURL, "contents"))

	pgtest.Exec(t, rawURL, "ALTER TABLE postings SET (autovacuum_vacuum_cost_delay = 7)")
	openStore(t, rawURL, nil)
	require.Equal(t, tuned, delays(t, rawURL, "contents"))
	require.Contains(t, delays(t, rawURL, "postings"), "autovacuum_vacuum_cost_delay=7}")

	pgtest.Exec(t, rawURL, reset)
	pgtest.Exec(t, rawURL, `DO $$ BEGIN
	CREATE ROLE guest LOGIN;
	EXECUTE format('GRANT USAGE ON SCHEMA %I TO guest; GRANT ALL ON ALL TABLES IN SCHEMA %1$I TO guest', current_schema());
END $$`)
	t.Cleanup(func() { pgtest.Exec(t, rawURL, "DROP OWNED BY guest; DROP ROLE guest") })
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	u.User = url.User("guest")
	openStore(t, u.String(), nil)
	require.Empty(t, delays(t, rawURL, "contents"))
}

// TestVacuumSettingsLater: a locked table is left for the next opening.
func TestVacuumSettingsLater(t *testing.T) {
	rawURL := pgtest.NewURL(t)
	openStore(t, rawURL+"&layout=compact", nil)
	pgtest.Exec(t, rawURL, reset)
	holder := openTest(t, rawURL, nil)
	tx, err := holder.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE contents IN SHARE UPDATE EXCLUSIVE MODE")
	require.NoError(t, err)
	db, err := store.Open(t.Context(), rawURL, &store.Options{LockTimeout: 10 * time.Millisecond})
	require.NoError(t, err)
	_, err = db.Entities(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.Empty(t, delays(t, rawURL, "contents"))
	require.NoError(t, tx.Rollback())
	openStore(t, rawURL, nil)
	require.Equal(t, tuned, delays(t, rawURL, "contents"))
}
