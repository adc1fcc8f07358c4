package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// runCheck damages rows in many ways. Check must find the damage, and Repair
// must rebuild derived rows and refuse when source rows are damaged. A read
// error must not be reported as damage. A backup must have the same contents as
// the store.
func runCheck(t *testing.T, h Harness) {
	for _, h.layout = range []string{"arkiv", "compact"} {
		t.Run(h.layout, func(t *testing.T) {
			for i, d := range damages[h.layout] {
				if h.slow() && i%4 != 0 {
					continue // opening is slow
				}
				t.Run(d.name, func(t *testing.T) { runDamage(t, h, d) })
			}
		})
	}
	parts[Harness]{
		{"backup", runBackup},
		{"outcome", runOutcomes},
		{"columns", runColumns},
	}.run(t, h)
}

// damage is a statement that damages a store. Its arguments are bytes that
// cannot be decoded.
type damage struct {
	name, sql string
	source    bool // a source row, which cannot be derived
}

// damages by entity layout. Damage to events is tested with one layout only.
var damages = map[string][]damage{
	"arkiv": {
		{"attribute value", `UPDATE string_attributes SET value = 'other' WHERE key = 'group'`, false},
		{"attribute missing", `DELETE FROM numeric_attributes WHERE key = 'n'`, false},
		{"attribute end", `UPDATE string_attributes SET to_block = to_block - 1 WHERE key = 'group'`, false},
		{"payload", `UPDATE payloads SET content_type = 'x'`, true},
		{"version missing", `DELETE FROM payloads WHERE from_block = 3`, true},
		{"block missing", `DELETE FROM varve_blocks WHERE block = 3`, true},
		{"block number", `UPDATE varve_blocks SET block = 99 WHERE block = 5`, true},
		{"last block, of no change", `UPDATE varve_blocks SET digest = (SELECT digest FROM varve_blocks WHERE block = 1) WHERE block = 7`, true},
		{"event postings", `DELETE FROM event_postings WHERE term = '=A'`, false},
		{"event missing", `DELETE FROM events WHERE position = 2`, true},
		{"event type", `UPDATE events SET type = 'C' WHERE position = 2`, true},
		{"event time", `UPDATE events SET time = time + 1 WHERE position = 2`, true},
		{"record", `UPDATE varve_meta SET value = 'expiration' WHERE name = 'entities.extend'`, true},
		{"table missing", `DROP TABLE string_attributes`, true},
	},
	"compact": {
		{"postings", `DELETE FROM postings`, false},
		{"page", `UPDATE postings SET body = low`, false},
		{"list of runs", `UPDATE progress SET runs = tip`, true},
		{"key", `UPDATE entity_keys SET hash = hash + 1`, false},
		{"count", `UPDATE progress SET live = live + 1`, false},
		{"current version", `UPDATE current_versions SET expires = expires - 1`, true},
		{"closed version", `DELETE FROM closed_versions`, true},
		{"name", `DELETE FROM names`, true},
		{"payload", `DELETE FROM contents WHERE no = 3`, true},
		{"data", `UPDATE current_versions SET data = ? WHERE id = 2`, true},
		{"end", `UPDATE closed_versions SET to_block = to_block + 1`, true},
	},
}

func runDamage(t *testing.T, h Harness, d damage) {
	url := h.quickURL(t)
	db := fillForCheck(t, h, url)
	report := call1(t, db.Check, nil)
	require.NoError(t, report.Err())
	require.True(t, report.Digest)
	require.Equal(t, report.Head, report.Sound)
	closeDB(t, db)

	db = h.open(t, url, nil)
	inTx(t, db.Engine(), func(tx driver.Tx) {
		args := slices.Repeat([]any{[]byte{1, 2, 3}}, strings.Count(d.sql, "?"))
		n := exec(t, tx, d.sql, args...)
		require.True(t, n > 0 || strings.HasPrefix(d.sql, "DROP"), "the damage changes something")
	})
	report = call1(t, db.Check, nil)
	require.ErrorIs(t, report.Err(), store.ErrCorrupt)
	require.Equal(t, store.Damaged, report.Outcome)
	closeDB(t, db)

	db = h.open(t, url, &store.Options{ReadOnly: true})
	ents, err := db.Entities(t.Context(), nil)
	if err == nil {
		_, err = ents.Verify(t.Context())
	}
	if !strings.HasPrefix(d.name, "event") {
		require.ErrorIs(t, err, store.ErrCorrupt, "Verify finds it as well")
	}
	closeDB(t, db)

	db = h.open(t, url, nil)
	repaired, err := db.Repair(t.Context(), nil)
	if d.source {
		require.ErrorIs(t, err, store.ErrCorrupt)
		return
	}
	require.NoError(t, err)
	require.NotEmpty(t, repaired.Rebuilt)
	require.NoError(t, repaired.Err())
	closeDB(t, db)

	// The repaired store can be written to.
	db = h.open(t, url, nil)
	ents = call1(t, db.Entities, nil)
	call1(t, ents.Apply, checkBlock(9))
	require.NoError(t, ents.Flush(t.Context()))
	evs := call1(t, db.Events, nil)
	must(evs.Append(t.Context(), []event.Event{checkEvent(99)}, nil))(t)
	report = call1(t, db.Check, nil)
	require.NoError(t, report.Err())
}

func checkBlock(number uint64) entity.Block {
	b := entity.Block{Number: number}
	for i := range uint32(4) {
		op := entity.Op{Kind: entity.Update, OpIndex: i, Key: entity.Key{byte(i)}, BTL: 1000 + number, Content: []byte(fmt.Sprint("content ", number, i)),
			StringAttributes: map[string]string{"group": fmt.Sprint(uint64(i) + number%2)}, NumericAttributes: map[string]uint64{"n": number}}
		if number == 1 {
			op.Kind = entity.Create
		}
		b.Ops = append(b.Ops, op)
	}
	return b
}

func checkEvent(n int) event.Event {
	return event.Event{Type: [...]string{"A", "B"}[n%2], Data: []byte(fmt.Sprint("event ", n)), Tags: []event.Tag{event.NewTag("n", fmt.Sprint(n%3))}, ID: event.ID{1, byte(n)}}
}

// fillForCheck makes a store with entities and events, all of them merged and
// indexed.
func fillForCheck(t *testing.T, h Harness, url string) *store.DB {
	db := h.open(t, url, nil)
	ents := call1(t, db.Entities, &store.EntityOptions{Layout: h.layout})
	for n := uint64(1); n <= 5; n++ {
		call1(t, ents.Apply, checkBlock(n))
	}
	for n := uint64(6); n <= 7; n++ { // which change nothing
		call1(t, ents.Apply, entity.Block{Number: n})
	}
	require.NoError(t, ents.Flush(t.Context()))
	evs := call1(t, db.Events, &store.EventOptions{IndexEvery: 4})
	for n := range 10 {
		must(evs.Append(t.Context(), []event.Event{checkEvent(n)}, nil))(t)
	}
	return db
}

// runBackup: an incomplete backup is refused, and so is a Restore into a
// database that has a store.
func runBackup(t *testing.T, h Harness) {
	db := fillForCheck(t, h.with("compact"), h.quickURL(t))
	var copied bytes.Buffer
	contents := must(db.Backup(t.Context(), &copied, nil))(t)
	require.EqualValues(t, 10, contents.EventHead)
	restored := h.open(t, h.quickURL(t), nil)
	refuses(t, store.ErrCorrupt)(restored.Restore(t.Context(), bytes.NewReader(copied.Bytes()[:copied.Len()-20]), nil))
	require.Equal(t, contents, must(restored.Restore(t.Context(), bytes.NewReader(copied.Bytes()), nil))(t))
	report := call1(t, restored.Check, nil)
	require.NoError(t, report.Err())
	require.Equal(t, contents.Head, must(call1(t, restored.Entities, nil).Head(t.Context()))(t))
	refuses(t, store.ErrLayout, "holds a Varve store already")(restored.Restore(t.Context(), bytes.NewReader(copied.Bytes()), nil))
}
