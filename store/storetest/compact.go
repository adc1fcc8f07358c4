package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// runCompact tests properties of the layout compact that no other layout has:
// tables of older versions, and merges.
var runCompact = parts[Harness]{
	{"old tables", testCompactOldTables},
	{"no reader", testCompactNoReader},
}.run

// smallBacklog is a backlog so low that tests encounter every state of a merge:
// between blocks, between its steps, and with blocks that merge by themselves.
const smallBacklog = 3

// manyBlocks creates n entities and changes some of them in each block.
func manyBlocks(n, perBlock int) []entity.Block {
	var blocks []entity.Block
	for at := 0; at < n; at += perBlock {
		var ops []entity.Op
		for i := at; i < min(at+perBlock, n); i++ {
			ops = append(ops, on(fmt.Sprintf("e%d", i), opCreate(1000+uint64(i), owner(entity.Address{byte(i % 5)}),
				text("group", fmt.Sprint(i%7)), text("unique", fmt.Sprint("u", i)), number("n", uint64(i%11)), content("t", fmt.Sprint(i)))))
		}
		for i := at % 13; i < at; i += 13 {
			ops = append(ops, on(fmt.Sprintf("e%d", i), opUpdate(1000, text("group", "changed"), number("n", uint64(at)))))
		}
		blocks = append(blocks, newBlock(uint64(firstBlock+1+at), ops...))
	}
	return blocks
}

func withBacklog(newURL func(testing.TB) string, n int) func(testing.TB) string {
	return func(t testing.TB) string { return withParams(t, newURL(t), "backlog", fmt.Sprint(n)) }
}

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
	for _, b := range manyBlocks(60, 10) {
		call1(t, ents.Apply, b)
	}
	require.NoError(t, ents.Flush(t.Context()))
	require.Empty(t, everything(t, held))
	require.NoError(t, held.Close())
	s := must(ents.At(t.Context(), store.Head))(t)
	defer s.Close()
	require.Len(t, everything(t, s), 60)
}
