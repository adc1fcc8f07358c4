package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runEvents tests the event store: the requirements and examples of the
// specification of Dynamic Consistency Boundaries (https://dcb.events), and
// appends that share commits.
var runEvents = parts[Harness]{
	{"append", runEventAppend},
	{"repeat many", runEventRepeatPass},
	{"read", runEventRead},
	{"project", runEventProject},
	{"examples", runEventExamples},
	{"refusals", runEventRefusals},
	{"open", runEventOpen},
	{"layout", runEventLayout},
	{"subscribe", runEventSubscribe},
	{"group", runEventGroup},
	{"locked", runEventLocked},
	{"durable", runEventDurable},
	{"race", runEventRace},
	{"linearizable", runEventLinearizable},
	{"batch", runEventBatch},
	{"import", runEventImport},
	{"checkpoint", runEventCheckpoint},
	{"truncate", runEventTruncate},
	{"history", runEventHistory},
}.run

// eventStream is an event store under test.
type eventStream struct {
	event.Checkpointer               // own, or a client of it
	own                *store.Events // of this process
	db                 *store.DB
	url                string
}

// events opens a new event store.
func (h Harness) events(t testing.TB) eventStream {
	t.Helper()
	return h.connected(t, h.openEvents(t, h.quickURL(t), store.EventOptions{}))
}

// indexedEvents opens a new event store that writes postings after every few
// events, so that a short test has events with postings and without. Another
// process that opens the database writes them less often.
func (h Harness) indexedEvents(t testing.TB) eventStream {
	t.Helper()
	return h.connected(t, h.openEvents(t, h.quickURL(t), store.EventOptions{IndexEvery: 4, LockedRows: 4}))
}

func (h Harness) openEvents(t testing.TB, url string, opts store.EventOptions) eventStream {
	t.Helper()
	return streamOf(t, h.open(t, url, nil), url, opts)
}

// streamOf opens the event store of a database.
func streamOf(t testing.TB, db *store.DB, url string, opts store.EventOptions) eventStream {
	t.Helper()
	evs := call1(t, db.Events, &opts)
	return eventStream{Checkpointer: evs, own: evs, db: db, url: url}
}

// another opens the same database once more, as another process does. Where the
// engine does not allow that, it returns s.
func (s eventStream) another(t testing.TB, h Harness) eventStream {
	t.Helper()
	if !s.db.Engine().Capabilities().MultiProcess {
		return s
	}
	return h.openEvents(t, s.url, store.EventOptions{PollInterval: 5 * time.Millisecond})
}

// add appends events unconditionally and returns their positions.
func (s eventStream) add(t testing.TB, events ...event.Event) []uint64 {
	t.Helper()
	positions := must(s.Append(soon(t), events, nil))(t)
	require.Len(t, positions, len(events))
	return positions
}

// all returns every event.
func (s eventStream) all(t testing.TB) []event.Sequenced {
	t.Helper()
	return s.read(t, event.All(), nil)
}

func (s eventStream) read(t testing.TB, q event.Query, opts *event.ReadOptions) []event.Sequenced {
	t.Helper()
	return collect(t, s.Read(soon(t), q, opts))
}

// names returns the data of the events that a query selects. Tests use data as
// names.
func (s eventStream) names(t testing.TB, q event.Query, opts *event.ReadOptions) string {
	t.Helper()
	var names []string
	for _, e := range s.read(t, q, opts) {
		names = append(names, string(e.Data))
	}
	return strings.Join(names, " ")
}

// ev returns an event of a type with tags given as "key:value" and a name as
// data.
func ev(typ, name string, tags ...string) event.Event {
	return event.Event{Type: typ, Data: []byte(name), Tags: tagList(tags)}
}

func tagList(texts []string) []event.Tag {
	var tags []event.Tag
	for _, text := range texts {
		key, value, _ := strings.Cut(text, ":")
		tags = append(tags, event.NewTag(key, value))
	}
	return tags
}

// item returns an item of types, separated by "|", and tags.
func item(types string, tags ...string) event.Item {
	it := event.Item{Tags: tagList(tags)}
	if types != "" {
		it.Types = strings.Split(types, "|")
	}
	return it
}

func anyOf(items ...event.Item) event.Query { return event.Query{Items: items} }

// idOf returns the ID of a number.
func idOf(n int) (id event.ID) {
	copy(id[:], fmt.Sprintf("id-%013d", n))
	return id
}

// limit is longer than any call takes on any machine.
const limit = time.Minute

// soon returns a context that ends a call that hangs.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// wait waits for goroutines and fails if they hang.
func wait(t testing.TB, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal("goroutines hang")
	}
}
