package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// The kept store has 200 formatEvents, written with IndexEvery 60 by a program that
// wrote the postings of a batch at once, and closed: 180 of them have postings.
const keptEvents = 200

func formatEvent(n int) event.Event {
	return event.Event{
		ID: event.ID{1, byte(n >> 8), byte(n)}, Type: string(rune('A' + n%3)), Data: fmt.Append(nil, "data ", n),
		Tags: []event.Tag{event.NewTag("n", fmt.Sprint(n)), event.NewTag("part", fmt.Sprint(n%7))},
	}
}

// TestEventFormat3 checks that events of the format before are read without a change,
// and that the store goes on and refuses older programs from the first batch on that
// a commit leaves half written.
func TestEventFormat3(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "kept.db")
	unpack(t, "events-3.db.gz", path)
	has := func(db *store.DB, evs *store.Events, events int, format string) {
		report, err := db.Check(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, report.Err())
		require.EqualValues(t, events, report.Events)
		for part := range 7 {
			n, positions := 0, []uint64(nil)
			for ev, err := range evs.Read(ctx, event.Tagged(event.NewTag("part", fmt.Sprint(part))), nil) {
				require.NoError(t, err)
				n++
				positions = append(positions, ev.Position)
			}
			require.Equal(t, (events+6-part)/7, n, "%v", positions)
		}
		view, err := db.Engine().Snapshot(ctx)
		require.NoError(t, err)
		var value []byte
		err = driver.QueryRow(ctx, view, "SELECT value FROM varve_meta WHERE name = 'events.format'", nil, &value)
		require.NoError(t, err)
		require.Equal(t, format, string(value))
		require.NoError(t, view.Close())
	}

	// A reader leaves it as it is.
	db, err := store.Open(ctx, "sqlite:"+path, &store.Options{ReadOnly: true})
	require.NoError(t, err)
	evs, err := db.Events(ctx, nil)
	require.NoError(t, err)
	has(db, evs, keptEvents, "3")
	require.NoError(t, db.Close())

	// A writer goes on.
	db, err = store.Open(ctx, "sqlite:"+path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err = db.Events(ctx, &store.EventOptions{IndexEvery: 60})
	require.NoError(t, err)
	for n := keptEvents; n < 2*keptEvents; n++ {
		format := "3"
		if n >= 240 {
			format = "5"
		}
		has(db, evs, n, format)
		positions, err := evs.Append(ctx, []event.Event{formatEvent(n)}, event.Unless(event.Tagged(event.NewTag("n", fmt.Sprint(n)))))
		require.NoError(t, err)
		require.Equal(t, []uint64{uint64(n) + 1}, positions)
		positions, err = evs.Append(ctx, []event.Event{formatEvent(n / 2)}, nil)
		require.NoError(t, err)
		require.Equal(t, []uint64{uint64(n/2) + 1}, positions, "a repetition")
	}
	has(db, evs, 2*keptEvents, "5")
}
