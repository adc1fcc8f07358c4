package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runCompact tests properties of the layout compact that no other layout has:
// tables of older versions, and merges.
var runCompact = parts[Harness]{
	{"old tables", testCompactOldTables},
	{"no reader", testCompactNoReader},
}.run

// smallBacklog is a backlog so low that tests encounter every state of a merge:
// between blocks, between its steps, and with blocks that merge by themselves.
const smallBacklog = "3"

// testCompactOldTables: a store with tables of an older version is refused,
// with their name.
func testCompactOldTables(t *testing.T, h Harness) {
	const format = "2"
	url := withParams(t, h.NewURL(t), "layout", "compact")
	db := h.open(t, url, nil)
	call1(t, db.Entities, nil)
	inTx(t, db.Engine(), func(tx driver.Tx) {
		n := exec(t, tx, "DELETE FROM varve_meta WHERE name = 'checksum'")
		require.EqualValues(t, 1, n)
		n = exec(t, tx, "UPDATE varve_meta SET value = '"+format+"' WHERE name = 'format'")
		require.EqualValues(t, 1, n)
	})
	closeDB(t, db)
	_, err := h.open(t, url, nil).Entities(t.Context(), nil)
	require.ErrorIs(t, err, store.ErrLayout)
	require.ErrorContains(t, err, fmt.Sprintf("format %q", format))
	require.ErrorContains(t, err, "write a block tar with the version that made the store")
}

// testCompactNoReader: a merge completes even if the caller holds every reader.
func testCompactNoReader(t *testing.T, h Harness) {
	rawURL := withParams(t, h.NewURL(t), "layout", "compact", "readers", "1", "backlog", "1000")
	db := h.open(t, rawURL, nil)
	ents := call1(t, db.Entities, nil)
	held := must(ents.At(t.Context(), store.Head))(t)
	for n := range uint64(6) {
		call1(t, ents.Apply, checkBlock(n+1))
	}
	require.NoError(t, ents.Flush(t.Context()))
	require.Empty(t, everything(t, held))
	require.NoError(t, held.Close())
	s := must(ents.At(t.Context(), store.Head))(t)
	defer s.Close()
	require.Len(t, everything(t, s), 4)
}
