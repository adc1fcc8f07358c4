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
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// historyChecks is how many random histories of events are tried, unless
// -rapid.checks says otherwise, and at most three times Harness.Checks.
const historyChecks = 30

// runEventHistory compares random histories of an event store with a list in memory. The
// store is opened again with another IndexEvery and restored from its backup meanwhile,
// commits fail, and consumers move without events: whatever happens, conditions, reads and
// repetitions have the answers of the list, and a check finds nothing.
func runEventHistory(t *testing.T, h Harness) {
	limitChecks(t, min(cmp.Or(3*h.Checks, historyChecks), historyChecks))
	rapid.Check(t, func(rt *rapid.T) {
		m := &eventMachine{h: h, t: t, checkpoints: map[string]uint64{}, whole: 1}
		m.open(rt, h.quickURL(t))
		defer func() { m.close(rt) }()
		rt.Repeat(map[string]func(*rapid.T){
			"append":      m.append,
			"append more": m.append,
			"append on":   m.append,
			"repeat":      m.repeat,
			"advance":     m.advance,
			"move":        m.move,
			"alone":       m.alone,
			"import":      m.importMore,
			"truncate":    m.truncate,
			"fail":        m.fail,
			"other":       m.openOther,
			"reopen":      m.reopen,
			"restore":     m.restore,
			"read":        m.read,
			"read more":   m.read,
			"check":       m.check,
		})
		m.judge(rt)
		m.check(rt)
	})
}

// eventMachine is an event store beside the model of it.
type eventMachine struct {
	h Harness
	t *testing.T

	url       string
	processes []eventStream // the second one as another process would
	broken    *brokenEngine // of the first one

	model       []store.SequencedEvent // without times
	checkpoints map[string]uint64
	whole       uint64 // the first event that is not truncated
	ids         int    // that were given
}

func (m *eventMachine) open(t *rapid.T, rawURL string) {
	m.url = rawURL
	m.openProcess(t, wrapped(m.t, rawURL, "broken", breakable))
	m.broken = breaker(m.processes[0].db.Engine())
}

func (m *eventMachine) openProcess(t *rapid.T, rawURL string) {
	opts := store.EventOptions{LockedRows: 4, IndexEvery: rapid.SampledFrom([]int{1, 2, 3, 5, 8, 16, 0}).Draw(t, "index every")}
	db := mustOpen(t, rawURL, nil)
	m.processes = append(m.processes, eventStream{Events: eventsOf(t, db, opts), db: db, url: rawURL})
}

func (m *eventMachine) close(t *rapid.T) {
	for _, s := range slices.Backward(m.processes) {
		require.NoError(t, s.db.Close())
	}
	m.processes = nil
}

// stream is one of the processes.
func (m *eventMachine) stream(t *rapid.T) eventStream {
	return rapid.SampledFrom(m.processes).Draw(t, "process")
}

func (m *eventMachine) head() uint64 { return uint64(len(m.model)) }

// openOther opens the database once more, where the engine allows that.
func (m *eventMachine) openOther(t *rapid.T) {
	if len(m.processes) == 1 && m.processes[0].db.Engine().Capabilities().MultiProcess {
		m.openProcess(t, m.url)
	}
	m.begin(t)
}

func (m *eventMachine) reopen(t *rapid.T) {
	m.judge(t)
	m.close(t)
	m.open(t, m.url)
	m.begin(t)
}

// begin does one thing or another first on a store that was opened: what it does not know
// of the events yet it has to find out for each of them.
func (m *eventMachine) begin(t *rapid.T) {
	rapid.SampledFrom([]func(*rapid.T){m.advance, m.move, m.append, m.repeat, m.truncate, m.fail, m.read}).Draw(t, "first")(t)
	m.judge(t)
}

// move moves a consumer and does nothing else.
func (m *eventMachine) move(t *rapid.T) {
	c := store.EventCheckpoint{Consumer: "mover", From: m.checkpoints["mover"], To: uint64(rapid.IntRange(0, len(m.model)).Draw(t, "to"))}
	_, err := m.stream(t).Advance(context.Background(), c, nil, nil)
	require.NoError(t, err)
	m.checkpoints[c.Consumer] = c.To
}

// restore goes on with a store that was restored from a backup.
func (m *eventMachine) restore(t *rapid.T) {
	m.judge(t)
	var file bytes.Buffer
	_, err := m.stream(t).db.Backup(context.Background(), &file, nil)
	require.NoError(t, err)
	m.close(t)
	rawURL := m.h.quickURL(m.t)
	restored := mustOpen(t, rawURL, nil)
	_, err = restored.Restore(context.Background(), &file, nil, nil)
	require.NoError(t, errors.Join(err, restored.Close()))
	m.open(t, rawURL)
	m.begin(t)
}

var (
	historyTypes = []string{"A", "B", "C"}
	historyTags  = []string{"x:1", "x:2", "y:1", "z:1"}
)

func drawTags(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(historyTags), 0, 3, rapid.ID).Draw(t, "tags")
}

func drawItem(t *rapid.T) store.EventItem {
	it := item("", drawTags(t)...)
	least := 0
	if len(it.Tags) == 0 {
		least = 1
	}
	it.Types = rapid.SliceOfN(rapid.SampledFrom(historyTypes), least, 3).Draw(t, "types")
	return it
}

func drawQuery(t *rapid.T) store.EventQuery {
	return anyOf(rapid.SliceOfN(rapid.Custom(drawItem), 0, 3).Draw(t, "items")...)
}

// events draws new events, some with IDs.
func (m *eventMachine) events(t *rapid.T, least int) []store.Event {
	list := make([]store.Event, rapid.IntRange(least, 6).Draw(t, "events"))
	for i := range list {
		list[i] = ev(rapid.SampledFrom(historyTypes).Draw(t, "type"), fmt.Sprint(m.head(), i), drawTags(t)...)
		if rapid.IntRange(0, 2).Draw(t, "ID") == 0 {
			m.ids++
			list[i].ID = idOf(m.ids)
		}
	}
	return list
}

// condition draws a condition, by chance none.
func (m *eventMachine) condition(t *rapid.T) *store.Condition {
	if rapid.IntRange(0, 3).Draw(t, "no condition") == 0 {
		return nil
	}
	return &store.Condition{FailIfEventsMatch: drawQuery(t), After: uint64(rapid.IntRange(0, len(m.model)+1).Draw(t, "after"))}
}

// conflicts tells whether a condition forbids an append.
func (m *eventMachine) conflicts(cond *store.Condition) bool {
	return cond != nil && slices.ContainsFunc(m.model, func(e store.SequencedEvent) bool {
		return e.Position > cond.After && cond.FailIfEventsMatch.Matches(&e.Event)
	})
}

// requireConflict checks that an error names an event that a condition forbids.
func (m *eventMachine) requireConflict(t *rapid.T, cond *store.Condition, err error) {
	t.Helper()
	var conflict *store.ConflictError
	require.ErrorAs(t, err, &conflict, "%+v", cond)
	require.Greater(t, conflict.Position, cond.After)
	require.LessOrEqual(t, conflict.Position, m.head())
	require.True(t, cond.FailIfEventsMatch.Matches(&m.model[conflict.Position-1].Event), "%+v: event %d is no conflict", cond, conflict.Position)
}

// stored takes events that were appended into the model.
func (m *eventMachine) stored(t *rapid.T, events []store.Event, positions []uint64) {
	t.Helper()
	require.Len(t, positions, len(events))
	for i := range events {
		require.Equal(t, m.head()+1, positions[i])
		m.model = append(m.model, store.SequencedEvent{Position: positions[i], Event: events[i]})
	}
}

func (m *eventMachine) append(t *rapid.T) {
	events, cond := m.events(t, 1), m.condition(t)
	positions, err := m.stream(t).Append(context.Background(), events, cond)
	if m.conflicts(cond) {
		m.requireConflict(t, cond, err)
		return
	}
	require.NoError(t, err, "%+v", cond)
	m.stored(t, events, positions)
}

// judge asks for the verdict on some conditions by appending under them, and reads.
func (m *eventMachine) judge(t *rapid.T) {
	for range 2 {
		m.append(t)
		m.read(t)
	}
}

// repeat appends events that are stored, as they were or changed, whatever the condition.
func (m *eventMachine) repeat(t *rapid.T) {
	known := slices.DeleteFunc(slices.Clone(m.model), func(e store.SequencedEvent) bool { return e.ID.IsZero() })
	if len(known) == 0 {
		return
	}
	list := rapid.SliceOfNDistinct(rapid.SampledFrom(known), 1, 3, func(e store.SequencedEvent) uint64 { return e.Position }).Draw(t, "known")
	events := make([]store.Event, len(list))
	for i := range list {
		events[i] = list[i].Event
	}
	kind := rapid.SampledFrom([]string{"same", "same", "changed", "more"}).Draw(t, "kind")
	switch kind {
	case "changed":
		events[0].Data = []byte("changed")
	case "more":
		events = append(events, ev("A", "new"))
	}
	positions, err := m.stream(t).Append(context.Background(), events, m.condition(t))
	if kind != "same" {
		require.ErrorIs(t, err, store.ErrDuplicate)
		return
	}
	require.NoError(t, err)
	require.Equal(t, positionsOf(list), positions)
}

// advance moves a consumer, with events or without, or is refused.
func (m *eventMachine) advance(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "consumer")
	c := store.EventCheckpoint{Consumer: name, From: m.checkpoints[name], To: uint64(rapid.IntRange(0, len(m.model)+1).Draw(t, "to"))}
	if rapid.IntRange(0, 4).Draw(t, "elsewhere") == 0 {
		c.From += 7
	}
	events, cond := m.events(t, 0), m.condition(t)
	positions, err := m.stream(t).Advance(context.Background(), c, events, cond)
	switch {
	case m.conflicts(cond):
		m.requireConflict(t, cond, err)
	case c.From != m.checkpoints[name]:
		require.ErrorIs(t, err, store.ErrCheckpoint)
	case c.To > m.head():
		require.ErrorIs(t, err, store.ErrInvalid)
	default:
		require.NoError(t, err)
		m.stored(t, events, positions)
		m.checkpoints[name] = c.To
	}
	at, err := m.stream(t).Checkpoint(context.Background(), name)
	require.NoError(t, err)
	require.Equal(t, m.checkpoints[name], at)
}

// alone appends in a transaction that no other append shares.
func (m *eventMachine) alone(t *rapid.T) {
	events := m.events(t, 1)
	timed := make([]store.SequencedEvent, len(events))
	for i := range events {
		timed[i].Event = events[i]
	}
	positions, err := m.stream(t).AppendTimed(context.Background(), timed)
	require.NoError(t, err)
	m.stored(t, events, positions)
}

// importMore imports events, of which the store has some already.
func (m *eventMachine) importMore(t *rapid.T) {
	from := rapid.IntRange(int(m.whole-1), len(m.model)).Draw(t, "from")
	list := slices.Clone(m.model[from:])
	events := m.events(t, 1)
	var positions []uint64
	for i := range events {
		positions = append(positions, m.head()+uint64(i)+1)
		list = append(list, store.SequencedEvent{Position: positions[i], Event: events[i]})
	}
	opts := store.EventImportOptions{Batch: rapid.IntRange(1, 4).Draw(t, "batch")}
	done, err := m.stream(t).Import(context.Background(), stream(list, nil), opts)
	require.NoError(t, err)
	skipped := len(m.model) - from
	m.stored(t, events, positions)
	require.Equal(t, store.EventsImported{Events: len(events), Skipped: skipped, Head: m.head()}, done)
}

func (m *eventMachine) truncate(t *rapid.T) {
	before := uint64(rapid.IntRange(1, len(m.model)+1).Draw(t, "before"))
	require.NoError(t, m.stream(t).Truncate(context.Background(), before, nil))
	m.whole = max(m.whole, before)
}

// fail lets a transaction fail: nothing of it is stored, and the next one begins from what is.
func (m *eventMachine) fail(t *rapid.T) {
	s := m.processes[0]
	m.broken.fail(rapid.SampledFrom([]string{"insert", "commit"}).Draw(t, "fails"))
	defer m.broken.fail("")
	_, err := s.Append(context.Background(), m.events(t, 1), nil)
	require.ErrorIs(t, err, errBroken)
	m.broken.fail("")
	m.judge(t)
}

// read compares a read, which ends with an error where it comes to a truncated event.
func (m *eventMachine) read(t *rapid.T) {
	q, opts := drawQuery(t), &store.EventReadOptions{
		From:      uint64(rapid.IntRange(0, len(m.model)+1).Draw(t, "from")),
		Limit:     rapid.IntRange(0, 8).Draw(t, "limit"),
		Backwards: rapid.Bool().Draw(t, "backwards"),
		OnlyLast:  rapid.IntRange(0, 3).Draw(t, "only last") == 0,
	}
	want := expected(m.model, q, opts)
	list, err := collect(m.stream(t).Read(context.Background(), q, opts))
	if i := slices.IndexFunc(want, func(at uint64) bool { return at < m.whole }); i >= 0 {
		var gone *store.TruncatedError
		require.ErrorAs(t, err, &gone)
		require.Equal(t, store.TruncatedError{Position: want[i], Before: m.whole}, *gone)
		want = want[:i]
	} else {
		require.NoError(t, err)
	}
	require.True(t, slices.Equal(want, positionsOf(list)), "%+v, %+v: want %v, got %v", q, opts, want, positionsOf(list))
	for i := range list {
		require.True(t, list[i].Equal(&m.model[list[i].Position-1].Event), "event %d", list[i].Position)
	}
}

func (m *eventMachine) check(t *rapid.T) {
	report := checkOf(t, m.stream(t).db)
	require.NoError(t, report.Err())
	head := headOf(t, m.stream(t))
	require.Equal(t, m.head(), head)
}

var errBroken = errors.New("broken on purpose")

// brokenEngine is an engine whose write transactions fail where a test says.
type brokenEngine struct {
	driver.Engine
	at string // "insert", "commit", or empty: they do not fail
}

// breakable makes an engine one that can be told to fail.
func breakable(e driver.Engine) driver.Engine {
	b := &brokenEngine{Engine: e}
	if o, ok := e.(driver.Overlapper); ok {
		return brokenOverlapper{b, o}
	}
	return b
}

// breaker returns the engine that breakable has made.
func breaker(e driver.Engine) *brokenEngine {
	if o, ok := e.(brokenOverlapper); ok {
		return o.brokenEngine
	}
	return e.(*brokenEngine)
}

func (e *brokenEngine) fail(at string) { e.at = at }

// Begin implements driver.Engine.
func (e *brokenEngine) Begin(ctx context.Context) (driver.Tx, error) {
	tx, err := e.Engine.Begin(ctx)
	return brokenTx{tx, e}, err
}

// brokenOverlapper is one that is a driver.Overlapper.
type brokenOverlapper struct {
	*brokenEngine
	driver.Overlapper
}

// BeginVisible implements driver.Overlapper.
func (e brokenOverlapper) BeginVisible(ctx context.Context) (driver.Tx, error) {
	tx, err := e.Overlapper.BeginVisible(ctx)
	return brokenTx{tx, e.brokenEngine}, err
}

type brokenTx struct {
	driver.Tx
	engine *brokenEngine
}

// Insert implements driver.Tx.
func (tx brokenTx) Insert(ctx context.Context, table *driver.Table, rows []any) error {
	if tx.engine.at == "insert" {
		return errBroken
	}
	return tx.Tx.Insert(ctx, table, rows)
}

// Commit implements driver.Tx.
func (tx brokenTx) Commit(ctx context.Context) error {
	if tx.engine.at == "commit" {
		return errors.Join(errBroken, tx.Rollback())
	}
	return tx.Tx.Commit(ctx)
}
