package storetest

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// runColumns: a table without its columns is damage, and Check names the table.
// Calls that need the table fail with ErrCorrupt, not with an error of the
// engine.
func runColumns(t *testing.T, h Harness) {
	for _, table := range []string{"varve_meta", "varve_blocks", "payloads", "events", "event_postings", "event_checkpoints"} {
		t.Run(table, func(t *testing.T) { testColumns(t, h, table) })
	}
}

func testColumns(t *testing.T, h Harness, table string) {
	first := event.Checkpoint{Consumer: "first", To: 3}
	url := h.quickURL(t)
	db := fillForCheck(t, h.with("arkiv"), url)
	evs := call1(t, db.Events, nil)
	must(evs.Advance(t.Context(), first, nil, nil))(t)
	inTx(t, db.Engine(), func(tx driver.Tx) {
		exec(t, tx, "DROP TABLE "+table)
		exec(t, tx, "CREATE TABLE "+table+" (unknown BIGINT)")
	})
	closeDB(t, db)

	db = h.open(t, url, nil)
	report := call1(t, db.Check, nil)
	require.Equal(t, store.Damaged, report.Outcome)
	require.ErrorContains(t, report.Err(), "table "+table+" has no column ")
	if table != "varve_meta" { // which lists the content of a backup
		_, err := db.Backup(t.Context(), io.Discard, nil)
		requireDamaged(t, err, table, table)
	}
	_, err := db.Entities(t.Context(), nil)
	requireDamaged(t, err, table, "varve_meta", "varve_blocks", "payloads")
	evs, err = db.Events(t.Context(), nil)
	requireDamaged(t, err, table, "varve_meta", "events", "event_postings")
	if err == nil {
		_, err = evs.Checkpoint(t.Context(), "first")
		requireDamaged(t, err, table, "event_checkpoints")
		_, err = evs.Advance(t.Context(), event.Checkpoint{Consumer: "second", To: 3}, nil, nil)
		requireDamaged(t, err, table, "event_checkpoints")
	}
	closeDB(t, db)

	db = h.open(t, url, nil)
	repaired, err := db.Repair(t.Context(), nil)
	requireDamaged(t, err, table, "varve_meta", "varve_blocks", "payloads", "events", "event_postings")
	if table == "event_checkpoints" { // which has no rows that could be lost
		require.NoError(t, repaired.Err())
		evs = call1(t, db.Events, nil)
		must(evs.Advance(t.Context(), first, nil, nil))(t)
	}
}

// requireDamaged requires ErrCorrupt with the name of the table if the call
// needs the table, and no error otherwise.
func requireDamaged(t *testing.T, err error, table string, needed ...string) {
	t.Helper()
	for _, n := range needed {
		if n == table {
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, "table "+table+" has no column ")
			return
		}
	}
	require.NoError(t, err)
}
