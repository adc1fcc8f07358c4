package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// TestEventPages counts the pages that commits write to the log, of 16 events each: what
// finds an event must not take a page for each of its tags.
func TestEventPages(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite:"+t.TempDir()+"/events.db?durability=unsafe&checkpoint=manual", nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(5, 5))
	add := func(commits, size int) {
		for n := range commits {
			batch := make([]event.Event, size)
			for i := range batch {
				batch[i] = event.Event{Type: "Enrolled", Data: make([]byte, 60), Tags: []event.Tag{
					event.NewTag("student", fmt.Sprintf("%032x", random.Uint64())),
					event.NewTag("course", fmt.Sprintf("course-%d", (n*size+i)%1000)),
					event.NewTag("grade", "A"),
				}}
			}
			_, err := evs.Append(t.Context(), batch, event.Unless(event.Tagged(batch[0].Tags[0])))
			require.NoError(t, err)
		}
	}
	logged := func() int64 {
		stats, err := db.Engine().Stats(t.Context())
		require.NoError(t, err)
		return *stats.WALBytes / (4096 + 24)
	}
	add(20, 4096) // on which postings lie on pages of their own
	before := logged()
	const events = 2 * 4096
	add(events/16, 16)
	pages := float64(logged()-before) / events
	t.Logf("%.2f pages for each event", pages)
	require.Less(t, pages, 0.8)
}
