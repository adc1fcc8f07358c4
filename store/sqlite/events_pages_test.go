package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// eventLog is a store whose log only grows, of events that have one tag that no
// other has, one that comes again after 1,000 events, and one that all have.
type eventLog struct {
	t      *testing.T
	db     *store.DB
	evs    *store.Events
	random *rand.Rand
	events int
}

func newEventLog(t *testing.T) *eventLog {
	db, err := store.Open(t.Context(), "sqlite:"+t.TempDir()+"/events.db?durability=unsafe&checkpoint=manual", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	return &eventLog{t: t, db: db, evs: evs, random: rand.New(rand.NewPCG(5, 5))}
}

// append commits some events, and returns the pages that the commit has written.
func (l *eventLog) append(size int) int64 {
	batch := make([]event.Event, size)
	for i := range batch {
		batch[i] = event.Event{Type: "Enrolled", Data: make([]byte, 60), Tags: []event.Tag{
			event.NewTag("student", fmt.Sprintf("%032x", l.random.Uint64())),
			event.NewTag("course", fmt.Sprintf("course-%d", l.events%1000)),
			event.NewTag("grade", "A"),
		}}
		l.events++
	}
	before := l.logged()
	_, err := l.evs.Append(l.t.Context(), batch, event.Unless(event.Tagged(batch[0].Tags[0])))
	require.NoError(l.t, err)
	return l.logged() - before
}

func (l *eventLog) logged() int64 {
	stats, err := l.db.Engine().Stats(l.t.Context())
	require.NoError(l.t, err)
	return *stats.WALBytes / (4096 + 24)
}

// TestEventPages counts the pages that commits write to the log, of 16 events each: what
// finds an event must not take a page for each of its tags, and no commit may write what
// finds thousands.
func TestEventPages(t *testing.T) {
	l := newEventLog(t)
	for range 20 {
		l.append(4096) // on which postings lie on pages of their own
	}
	const events = 3 * 4096
	all, most := int64(0), int64(0)
	for range events / 16 {
		n := l.append(16)
		all, most = all+n, max(most, n)
	}
	pages := float64(all) / events
	t.Logf("%.2f pages for each event, at most %d in a commit", pages, most)
	require.Less(t, pages, 0.8)
	require.Less(t, most, int64(600))
}
