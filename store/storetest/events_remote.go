package storetest

import (
	"testing"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// RunEventStore runs the suites of events that need only an event.Checkpointer.
// connect returns one that works on the events of a database, for example the
// client of a service. Where the engine allows several processes, another one
// uses the database concurrently. The Checkpointer must not repeat calls that
// fail.
func RunEventStore(t *testing.T, h Harness, connect func(t testing.TB, db *store.DB) event.Checkpointer) {
	h.connect = connect
	parts[Harness]{
		{"append", runEventAppend},
		{"read", runEventRead},
		{"project", runEventProject},
		{"refusals", runEventRefusals},
		{"subscribe", parts[Harness]{{"replay and follow", subscribeFollow}, {"close", subscribeClose}}.run},
		{"group", parts[Harness]{{"cancel", groupCancel}}.run},
		{"checkpoint", parts[Harness]{
			{"advance", checkpointAdvance}, {"group", checkpointGroup}, {"live", checkpointLive}, {"consumers of one name", checkpointRivals},
		}.run},
		{"linearizable", runEventLinearizable},
		{"history", runEventHistory},
	}.run(t, h)
}

// connected returns a stream whose calls go through the result of connect, if
// there is one.
func (h Harness) connected(t testing.TB, s eventStream) eventStream {
	t.Helper()
	if h.connect != nil {
		s.Checkpointer = h.connect(t, s.db)
	}
	return s
}
