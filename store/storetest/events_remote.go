package storetest

import (
	"testing"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// RunEventStore runs, of the suites of runEvents, those that need no more than an
// event.Store, on an event.Checkpointer that is somewhere else: connect returns it of a database, whose
// events it appends to and reads, such as a client of a service over it. Where the engine
// allows several processes, another one uses the database beside it. Calls that fail are
// not to be repeated.
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

// connected returns a stream whose calls go through what connect returns, if there is
// such.
func (h Harness) connected(t testing.TB, s eventStream) eventStream {
	t.Helper()
	if h.connect != nil {
		s.Checkpointer = h.connect(t, s.db)
	}
	return s
}
