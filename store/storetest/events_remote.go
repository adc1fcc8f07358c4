package storetest

import (
	"context"
	"iter"
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
	parts := func(list map[string]func(*testing.T, Harness)) func(*testing.T, Harness) {
		return func(t *testing.T, h Harness) {
			for name, run := range list {
				t.Run(name, func(t *testing.T) { run(t, h) })
			}
		}
	}
	suites := []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"append", runEventAppend},
		{"read", runEventRead},
		{"project", runEventProject},
		{"refusals", runEventRefusals},
		{"subscribe", parts(map[string]func(*testing.T, Harness){
			"replay and follow": subscribeFollow, "close": subscribeClose,
		})},
		{"group", parts(map[string]func(*testing.T, Harness){
			"cancel": groupCancel,
		})},
		{"checkpoint", parts(map[string]func(*testing.T, Harness){
			"advance": checkpointAdvance, "group": checkpointGroup, "live": checkpointLive, "consumers of one name": checkpointRivals,
		})},
		{"linearizable", runEventLinearizable},
		{"history", runEventHistory},
	}
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) { s.run(t, h) })
	}
}

// connected returns a stream whose calls go through what connect returns, if there is
// such.
func (h Harness) connected(t testing.TB, s eventStream) eventStream {
	t.Helper()
	if h.connect != nil {
		s.remote = h.connect(t, s.db)
	}
	return s
}

// store is what the calls of a stream go to.
func (s eventStream) store() event.Checkpointer {
	if s.remote != nil {
		return s.remote
	}
	return s.Events
}

// Head implements event.Store.
func (s eventStream) Head(ctx context.Context) (uint64, error) { return s.store().Head(ctx) }

// Read implements event.Store.
func (s eventStream) Read(ctx context.Context, q event.Query, opts *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	return s.store().Read(ctx, q, opts)
}

// Append implements event.Store.
func (s eventStream) Append(ctx context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	return s.store().Append(ctx, events, cond)
}

// Subscribe implements event.Store.
func (s eventStream) Subscribe(ctx context.Context, q event.Query, from uint64) iter.Seq2[event.Sequenced, error] {
	return s.store().Subscribe(ctx, q, from)
}

// Checkpoint implements event.Checkpointer.
func (s eventStream) Checkpoint(ctx context.Context, consumer string) (uint64, error) {
	return s.store().Checkpoint(ctx, consumer)
}

// Advance implements event.Checkpointer.
func (s eventStream) Advance(ctx context.Context, c event.Checkpoint, events []event.Event, cond *event.Condition) ([]uint64, error) {
	return s.store().Advance(ctx, c, events, cond)
}

// Project is that of package event, on whatever the stream is.
func (s eventStream) Project(ctx context.Context, projectors ...event.Projector) (*event.Condition, error) {
	return event.Project(ctx, s, projectors...)
}
