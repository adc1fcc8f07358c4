package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// runEventHistory compares random histories of an event store with a list in memory. The
// store is opened again with another IndexEvery and restored from its backup meanwhile,
// commits fail, and consumers move without events: whatever happens, conditions, reads and
// repetitions have the answers of the list, and a check finds nothing.
func runEventHistory(t *testing.T, h Harness) {
	n := 40
	if h.slow() || h.connect != nil {
		n = 5
	}
	for i := range cmp.Or(*histories, n) {
		if !t.Run(fmt.Sprint(i), func(t *testing.T) { eventHistory(t, h, i) }) {
			return
		}
	}
}

func eventHistory(t *testing.T, h Harness, i int) {
	m := &eventMachine{drawer: &drawer{Rand: randomSource(t, i)}, h: h, t: t, checkpoints: map[string]uint64{}, whole: 1}
	var cancel context.CancelFunc
	m.ctx, cancel = context.WithTimeout(t.Context(), historyTime)
	defer cancel()
	m.open(h.quickURL(t))
	defer m.close()
	all := []func(){
		m.append, m.append, m.append, m.repeat, m.advance, m.move, m.alone, m.importMore, m.truncate, m.fail,
		m.openOther, m.restore, m.read, m.read, m.check,
	}
	if h.connect == nil { // what serves a store has its lease until the test ends
		all = append(all, m.reopen)
	}
	for range 30 {
		one(m.drawer, all...)()
	}
	m.judge()
	m.check()
}

// eventMachine is an event store beside the model of it.
type eventMachine struct {
	*drawer
	h   Harness
	t   *testing.T
	ctx context.Context // of a deadline

	url       string
	processes []eventStream // the second one as another process would
	breaks    string        // the call of the first one that fails, or empty

	model       []event.Sequenced // without times
	checkpoints map[string]uint64
	whole       uint64 // the first event that is not truncated
	ids         int    // that were given
}

func (m *eventMachine) open(rawURL string) {
	m.url = rawURL
	m.openProcess(tap(func(call, _ string) error {
		if call == m.breaks {
			return errBroken
		}
		return nil
	}).tapped(m.t, rawURL, true))
	m.processes[0] = m.h.connected(m.t, m.processes[0])
}

func (m *eventMachine) openProcess(rawURL string) {
	opts := store.EventOptions{LockedRows: 4, IndexEvery: one(m.drawer, 1, 2, 3, 5, 8, 16, 0)}
	db := mustOpen(m.t, rawURL, nil)
	m.processes = append(m.processes, eventStream{Events: eventsOf(m.t, db, opts), db: db, url: rawURL})
}

func (m *eventMachine) close() {
	for _, s := range slices.Backward(m.processes) {
		require.NoError(m.t, s.db.Close())
	}
	m.processes = nil
}

// stream is one of the processes.
func (m *eventMachine) stream() eventStream {
	return one(m.drawer, m.processes...)
}

func (m *eventMachine) head() uint64 { return uint64(len(m.model)) }

// openOther opens the database once more, where the engine allows that.
func (m *eventMachine) openOther() {
	if len(m.processes) == 1 && m.processes[0].db.Engine().Capabilities().MultiProcess {
		m.openProcess(m.url)
	}
	m.begin()
}

func (m *eventMachine) reopen() {
	m.judge()
	m.close()
	m.open(m.url)
	m.begin()
}

// begin does one thing or another first on a store that was opened: what it does not know
// of the events yet it has to find out for each of them.
func (m *eventMachine) begin() {
	one(m.drawer, m.advance, m.move, m.append, m.repeat, m.truncate, m.fail, m.read)()
	m.judge()
}

// move moves a consumer and does nothing else.
func (m *eventMachine) move() {
	c := event.Checkpoint{Consumer: "mover", From: m.checkpoints["mover"], To: uint64(m.between(0, len(m.model)))}
	_, err := m.stream().Advance(m.ctx, c, nil, nil)
	require.NoError(m.t, err)
	m.checkpoints[c.Consumer] = c.To
}

// restore goes on with a store that was restored from a backup.
func (m *eventMachine) restore() {
	m.judge()
	var file bytes.Buffer
	_, err := m.stream().db.Backup(m.ctx, &file, nil)
	require.NoError(m.t, err)
	m.close()
	rawURL := m.h.quickURL(m.t)
	restored := mustOpen(m.t, rawURL, nil)
	_, err = restored.Restore(m.ctx, &file, nil)
	require.NoError(m.t, errors.Join(err, restored.Close()))
	m.open(rawURL)
	m.begin()
}

var (
	historyTypes = []string{"A", "B", "C"}
	historyTags  = []string{"x:1", "x:2", "y:1", "z:1"}
)

// some draws up to so many different elements.
func some[T any](d *drawer, list []T, least, most int) []T {
	list = slices.Clone(list)
	d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(d.between(least, most), len(list))]
}

// between draws a number, both ends included.
func (d *drawer) between(low, high int) int { return low + d.IntN(high-low+1) }

func (d *drawer) tags() []string { return some(d, historyTags, 0, 3) }

func (d *drawer) item() event.Item {
	it := item("", d.tags()...)
	it.Types = some(d, historyTypes, 1-min(1, len(it.Tags)), 3)
	return it
}

func (d *drawer) eventQuery() (q event.Query) {
	for range d.IntN(4) {
		q.Items = append(q.Items, d.item())
	}
	return q
}

// events draws new events, some with IDs.
func (m *eventMachine) events(least int) []event.Event {
	list := make([]event.Event, m.between(least, 6))
	for i := range list {
		list[i] = ev(one(m.drawer, historyTypes...), fmt.Sprint(m.head(), i), m.tags()...)
		if m.chance(3) {
			m.ids++
			list[i].ID = idOf(m.ids)
		}
	}
	return list
}

// condition draws a condition, by chance none.
func (m *eventMachine) condition() *event.Condition {
	if m.chance(4) {
		return nil
	}
	return &event.Condition{FailIfEventsMatch: m.eventQuery(), After: uint64(m.between(0, len(m.model)+1))}
}

// conflicts tells whether a condition forbids an append.
func (m *eventMachine) conflicts(cond *event.Condition) bool {
	return cond != nil && slices.ContainsFunc(m.model, func(e event.Sequenced) bool {
		return e.Position > cond.After && cond.FailIfEventsMatch.Matches(&e.Event)
	})
}

// requireConflict checks that an error names an event that a condition forbids.
func (m *eventMachine) requireConflict(cond *event.Condition, err error) {
	m.t.Helper()
	var conflict *event.ConflictError
	require.ErrorAs(m.t, err, &conflict, "%+v", cond)
	require.Greater(m.t, conflict.Position, cond.After)
	require.LessOrEqual(m.t, conflict.Position, m.head())
	require.True(m.t, cond.FailIfEventsMatch.Matches(&m.model[conflict.Position-1].Event), "%+v: event %d is no conflict", cond, conflict.Position)
}

// stored takes events that were appended into the model.
func (m *eventMachine) stored(events []event.Event, positions []uint64) {
	m.t.Helper()
	require.Len(m.t, positions, len(events))
	for i := range events {
		require.Equal(m.t, m.head()+1, positions[i])
		m.model = append(m.model, event.Sequenced{Position: positions[i], Event: events[i]})
	}
}

func (m *eventMachine) append() {
	events, cond := m.events(1), m.condition()
	positions, err := m.stream().Append(m.ctx, events, cond)
	if m.conflicts(cond) {
		m.requireConflict(cond, err)
		return
	}
	require.NoError(m.t, err, "%+v", cond)
	m.stored(events, positions)
}

// judge asks for the verdict on some conditions by appending under them, and reads.
func (m *eventMachine) judge() {
	for range 2 {
		m.append()
		m.read()
	}
}

// repeat appends events that are stored, as they were or changed, whatever the condition.
func (m *eventMachine) repeat() {
	known := slices.DeleteFunc(slices.Clone(m.model), func(e event.Sequenced) bool { return e.ID.IsZero() })
	if len(known) == 0 {
		return
	}
	list := some(m.drawer, known, 1, 3)
	events := make([]event.Event, len(list))
	for i := range list {
		events[i] = list[i].Event
	}
	kind := one(m.drawer, "same", "same", "changed", "more")
	switch kind {
	case "changed":
		change := one(m.drawer,
			func(e *event.Event) { e.Data = []byte("changed") }, func(e *event.Event) { e.Metadata = []byte("m") },
			func(e *event.Event) { e.Data, e.Metadata = nil, e.Data }, func(e *event.Event) { e.Type += "x" },
			func(e *event.Event) { e.Tags = append(slices.Clone(e.Tags), event.NewTag("changed", "")) })
		change(&events[0])
	case "more":
		events = append(events, ev("A", "new"))
	}
	positions, err := m.stream().Append(m.ctx, events, m.condition())
	if kind != "same" {
		require.ErrorIs(m.t, err, event.ErrDuplicate)
		return
	}
	require.NoError(m.t, err)
	require.Equal(m.t, positionsOf(list), positions)
}

// advance moves a consumer, with events or without, or is refused.
func (m *eventMachine) advance() {
	name := one(m.drawer, "a", "b")
	c := event.Checkpoint{Consumer: name, From: m.checkpoints[name], To: uint64(m.between(0, len(m.model)+1))}
	if m.chance(5) {
		c.From += 7
	}
	events, cond := m.events(0), m.condition()
	positions, err := m.stream().Advance(m.ctx, c, events, cond)
	switch {
	case m.conflicts(cond):
		m.requireConflict(cond, err)
	case c.From != m.checkpoints[name]:
		require.ErrorIs(m.t, err, event.ErrCheckpoint)
	case c.To > m.head():
		require.ErrorIs(m.t, err, store.ErrInvalid)
	default:
		require.NoError(m.t, err)
		m.stored(events, positions)
		m.checkpoints[name] = c.To
	}
	at, err := m.stream().Checkpoint(m.ctx, name)
	require.NoError(m.t, err)
	require.Equal(m.t, m.checkpoints[name], at)
}

// alone appends in a transaction that no other append shares.
func (m *eventMachine) alone() {
	events := m.events(1)
	timed := make([]event.Sequenced, len(events))
	for i := range events {
		timed[i].Event = events[i]
	}
	positions, err := m.stream().AppendTimed(m.ctx, timed)
	require.NoError(m.t, err)
	m.stored(events, positions)
}

// importMore imports events, of which the store has some already.
func (m *eventMachine) importMore() {
	from := m.between(int(m.whole-1), len(m.model))
	list := slices.Clone(m.model[from:])
	events := m.events(1)
	var positions []uint64
	for i := range events {
		positions = append(positions, m.head()+uint64(i)+1)
		list = append(list, event.Sequenced{Position: positions[i], Event: events[i]})
	}
	opts := &store.EventImportOptions{Batch: m.between(1, 4)}
	done, err := m.stream().Import(m.ctx, stream(list, nil), opts)
	require.NoError(m.t, err)
	skipped := len(m.model) - from
	m.stored(events, positions)
	require.Equal(m.t, store.EventsImported{Events: len(events), Skipped: skipped, Head: m.head()}, done)
}

func (m *eventMachine) truncate() {
	before := uint64(m.between(1, len(m.model)+1))
	require.NoError(m.t, m.stream().Truncate(m.ctx, before, nil))
	m.whole = max(m.whole, before)
}

// fail lets a transaction fail: nothing of it is stored, and the next one begins from what is.
func (m *eventMachine) fail() {
	s := m.processes[0]
	m.breaks = one(m.drawer, "insert", "commit")
	_, err := s.Events.Append(m.ctx, m.events(1), nil)
	m.breaks = ""
	require.ErrorIs(m.t, err, errBroken)
	m.judge()
}

// read compares a read, which ends with an error where it comes to a truncated event.
func (m *eventMachine) read() {
	q, opts := m.eventQuery(), &event.ReadOptions{
		From:      uint64(m.between(0, len(m.model)+1)),
		Limit:     m.between(0, 8),
		Backwards: m.chance(2),
		OnlyLast:  m.chance(4),
	}
	want := expected(m.model, q, opts)
	list, err := collect(m.stream().Read(m.ctx, q, opts))
	if i := slices.IndexFunc(want, func(at uint64) bool { return at < m.whole }); i >= 0 {
		var gone *event.TruncatedError
		require.ErrorAs(m.t, err, &gone)
		require.Equal(m.t, event.TruncatedError{Position: want[i], Before: m.whole}, *gone)
		want = want[:i]
	} else {
		require.NoError(m.t, err)
	}
	require.True(m.t, slices.Equal(want, positionsOf(list)), "%+v, %+v: want %v, got %v", q, opts, want, positionsOf(list))
	for i := range list {
		require.True(m.t, list[i].Equal(&m.model[list[i].Position-1].Event), "event %d", list[i].Position)
	}
}

func (m *eventMachine) check() {
	report := checkOf(m.t, m.stream().db)
	require.NoError(m.t, report.Err())
	head := headOf(m.t, m.stream())
	require.Equal(m.t, m.head(), head)
}

var errBroken = errors.New("broken on purpose")
