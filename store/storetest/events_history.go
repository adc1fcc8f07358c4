package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// runEventHistory compares random histories of an event store with a list in
// memory. Meanwhile the store is opened again with another IndexEvery and
// restored from its backup, commits fail, the clock stands still or goes back,
// and consumers move without events. Conditions, reads and repetitions must
// agree with the list, and Check finds no damage. Some stores have so many
// events that their lists of events by tag need several rows, and some queries
// have many items.
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
	m := &eventMachine{
		Drawer: &model.Drawer{Rand: randomSource(t, i)}, h: h, t: t, many: i%8 == 4, checkpoints: map[string]uint64{}, whole: 1,
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	var cancel context.CancelFunc
	m.ctx, cancel = context.WithTimeout(t.Context(), historyTime)
	defer cancel()
	m.open(h.quickURL(t))
	defer m.close()
	all := []func(){
		m.append, m.append, m.append, m.repeat, m.advance, m.move, m.alone, m.importMore, m.fail, m.openOther, m.restore,
		m.read, m.read, m.check,
	}
	if m.many {
		for len(m.model) < 3000 {
			events := m.events(1, 900)
			m.stored(events, m.stream().add(t, events...))
		}
		all = append(all, m.judge, m.judge, m.judge, m.judge, m.judge)
	} else {
		all = append(all, m.truncate)
	}
	if h.connect == nil { // a service has the lease of its store until the test ends
		all = append(all, m.reopen, m.giveUp, m.giveUp, m.giveUp)
	}
	for range 30 {
		m.now = m.now.Add(one(m.Drawer, 0, 0, time.Nanosecond, time.Microsecond, time.Second, -time.Minute, time.Hour))
		one(m.Drawer, all...)()
	}
	m.judge()
	m.check()
}

// eventMachine is an event store and the model of it.
type eventMachine struct {
	*model.Drawer
	h    Harness
	t    *testing.T
	ctx  context.Context // with a deadline
	many bool            // the store holds thousands of events
	now  time.Time       // the clock

	url       string
	processes []eventStream // the second one opened the database as another process does
	breaks    string        // the call of the first process that fails; empty: none
	countdown countdown     // cancels a call of the first process
	givingUp  bool          // the step is done twice; see giveUp

	model       []event.Sequenced
	checkpoints map[string]uint64
	whole       uint64 // the first event that is not truncated
	ids         int    // the last one
}

func (m *eventMachine) open(rawURL string) { m.openWith(rawURL, nil) }

// openWith opens the database, calls first if it is not nil, and then opens the
// events. Calls to the engine may fail.
func (m *eventMachine) openWith(rawURL string, first func(db *store.DB, opts *store.EventOptions)) {
	m.url = rawURL
	m.openProcess(tap(func(call, sql string) error {
		if call == m.breaks {
			return errBroken
		}
		return m.countdown.see(call, sql)
	}).tapped(m.t, rawURL, true), first)
	m.processes[0] = m.h.connected(m.t, m.processes[0])
}

func (m *eventMachine) openProcess(rawURL string, first func(db *store.DB, opts *store.EventOptions)) {
	opts := store.EventOptions{
		LockedRows: 4, IndexEvery: one(m.Drawer, 1, 2, 3, 5, 8, 16, 0), Now: func() time.Time { return m.now },
	}
	db := must(store.Open(m.ctx, rawURL, nil))(m.t)
	if first != nil {
		first(db, &opts)
	}
	m.processes = append(m.processes, streamOf(m.t, db, rawURL, opts))
}

func (m *eventMachine) close() {
	for _, s := range slices.Backward(m.processes) {
		require.NoError(m.t, s.db.Close())
	}
	m.processes = nil
}

// stream returns one of the processes.
func (m *eventMachine) stream() eventStream {
	return one(m.Drawer, m.processes...)
}

func (m *eventMachine) head() uint64 { return uint64(len(m.model)) }

// openOther opens the database once more, where the engine allows that.
func (m *eventMachine) openOther() {
	if len(m.processes) == 1 && m.processes[0].db.Engine().Capabilities().MultiProcess {
		m.openProcess(m.url, nil)
	}
	m.begin()
}

func (m *eventMachine) reopen() {
	m.judge()
	m.close()
	m.open(m.url)
	m.begin()
}

// begin does a random thing first with a store that was just opened, because
// a call on a new handle must first look up the store's content.
func (m *eventMachine) begin() {
	one(m.Drawer, m.advance, m.move, m.append, m.repeat, m.truncate, m.fail, m.read)()
	m.judge()
}

// move moves a consumer and does nothing else.
func (m *eventMachine) move() {
	c := event.Checkpoint{Consumer: "mover", From: m.checkpoints["mover"], To: uint64(m.between(0, len(m.model)))}
	if m.givingUp { // without events the checkpoint shows whether the first call was done
		done := m.first(func(ctx context.Context, s eventStream) error { return second(s.Advance(ctx, c, nil, nil)) })
		at := must(m.stream().Checkpoint(m.ctx, c.Consumer))(m.t)
		require.True(m.t, at == c.To || at == c.From && !done)
		c.From = at
	}
	must(m.stream().Advance(m.ctx, c, nil, nil))(m.t)
	m.checkpoints[c.Consumer] = c.To
}

// restore goes on with a store that was restored from a backup.
func (m *eventMachine) restore() {
	m.judge()
	var file bytes.Buffer
	must(m.stream().db.Backup(m.ctx, &file, nil))(m.t)
	m.close()
	rawURL := m.h.quickURL(m.t)
	restored := must(store.Open(m.ctx, rawURL, nil))(m.t)
	_, err := restored.Restore(m.ctx, &file, nil)
	require.NoError(m.t, errors.Join(err, restored.Close()))
	m.open(rawURL)
	m.begin()
}

var (
	historyTypes = []string{"A", "B", "C"}
	historyTags  = []string{"x:1", "x:2", "y:1", "z:1"}
)

// some draws between least and most different elements.
func some[T any](r *rand.Rand, list []T, least, most int) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(least+r.IntN(most-least+1), len(list))]
}

// between draws a number, both ends included.
func (m *eventMachine) between(low, high int) int { return low + m.IntN(high-low+1) }

// tags draws up to three tags. In a store of many events some tags are on all
// events, on every third, or on a few.
func (m *eventMachine) tags() []string {
	list := historyTags
	if m.many {
		list = []string{"all:x", fmt.Sprint("many:", m.IntN(3)), fmt.Sprint("few:", m.IntN(300)), one(m.Drawer, historyTags...)}
	}
	return some(m.Rand, list, 0, 3)
}

func (m *eventMachine) eventQuery() (q event.Query) {
	if m.many && m.Chance(12) {
		types := one(m.Drawer, "", "A")
		for i := range one(m.Drawer, 40, 250, 1200) {
			q.Items = append(q.Items, item(types, fmt.Sprint("few:", i)))
		}
	}
	for range m.IntN(4) {
		it := item("", m.tags()...)
		it.Types = some(m.Rand, historyTypes, 1-min(1, len(it.Tags)), 3)
		q.Items = append(q.Items, it)
	}
	return q
}

// events draws new events, some with IDs.
func (m *eventMachine) events(least, most int) []event.Event {
	list := make([]event.Event, m.between(least, most))
	for i := range list {
		list[i] = ev(one(m.Drawer, historyTypes...), fmt.Sprint(m.head(), i), m.tags()...)
		if m.many && !slices.ContainsFunc(list[i].Tags, func(t event.Tag) bool { return t.Key == "all" }) {
			list[i].Tags = append(list[i].Tags, event.NewTag("all", "x"))
		}
		if m.Chance(3) || m.givingUp { // a repetition is recognized by IDs
			m.ids++
			list[i].ID = idOf(m.ids)
		}
	}
	return list
}

// condition draws a condition or none.
func (m *eventMachine) condition() *event.Condition {
	if m.Chance(4) {
		return nil
	}
	return &event.Condition{FailIfEventsMatch: m.eventQuery(), After: uint64(m.between(0, len(m.model)+1))}
}

// conflicts reports whether a condition forbids an append.
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
	q := cond.FailIfEventsMatch
	if len(q.Items) > 0 {
		q = anyOf(q.Items[conflict.Item])
	}
	require.True(m.t, q.Matches(&m.model[conflict.Position-1].Event), "%+v: event %d is no conflict with item %d", cond, conflict.Position, conflict.Item)
}

// stored adds events that were appended to the model.
func (m *eventMachine) stored(events []event.Event, positions []uint64) {
	m.t.Helper()
	require.Len(m.t, positions, len(events))
	at := m.now.Truncate(time.Microsecond)
	if n := len(m.model); n > 0 && at.Before(m.model[n-1].Time) {
		at = m.model[n-1].Time // times do not decrease
	}
	for i := range events {
		require.Equal(m.t, m.head()+1, positions[i])
		m.model = append(m.model, event.Sequenced{Position: positions[i], Time: at, Event: events[i]})
	}
}

func (m *eventMachine) append() {
	events, cond := m.events(1, 6), m.condition()
	done := m.first(func(ctx context.Context, s eventStream) error { return second(s.Append(ctx, events, cond)) })
	positions, err := m.stream().Append(m.ctx, events, cond)
	if m.conflicts(cond) {
		require.False(m.t, done, "%+v", cond)
		m.requireConflict(cond, err)
		return
	}
	require.NoError(m.t, err, "%+v", cond)
	m.stored(events, positions)
}

// judge appends under conditions and reads.
func (m *eventMachine) judge() {
	for range 2 {
		m.append()
		m.read()
	}
}

// repeat appends events that are stored already, unchanged or changed.
func (m *eventMachine) repeat() {
	known := slices.DeleteFunc(slices.Clone(m.model), func(e event.Sequenced) bool { return e.ID.IsZero() })
	if len(known) == 0 {
		return
	}
	list := some(m.Rand, known, 1, 3)
	events := make([]event.Event, len(list))
	for i := range list {
		events[i] = list[i].Event
	}
	kind := one(m.Drawer, "same", "same", "changed", "more")
	switch kind {
	case "changed":
		change := one(m.Drawer,
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
	name := one(m.Drawer, "a", "b")
	c := event.Checkpoint{Consumer: name, From: m.checkpoints[name], To: uint64(m.between(0, len(m.model)+1))}
	if m.Chance(5) {
		c.From += 7
	}
	events, cond := m.events(0, 6), m.condition()
	if m.givingUp && len(events) == 0 {
		return // see move
	}
	m.first(func(ctx context.Context, s eventStream) error { return second(s.Advance(ctx, c, events, cond)) })
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
	at := must(m.stream().Checkpoint(m.ctx, name))(m.t)
	require.Equal(m.t, m.checkpoints[name], at)
}

// alone appends in a transaction that no other append shares.
func (m *eventMachine) alone() {
	events := m.events(1, 6)
	timed := make([]event.Sequenced, len(events))
	for i := range events {
		timed[i].Event = events[i]
	}
	positions := must(m.stream().own.AppendTimed(m.ctx, timed))(m.t)
	m.stored(events, positions)
}

// importMore imports events. The store has some of them already.
func (m *eventMachine) importMore() {
	from := m.between(int(m.whole-1), len(m.model))
	list := slices.Clone(m.model[from:])
	events := m.events(1, 6)
	var positions []uint64
	for i := range events {
		positions = append(positions, m.head()+uint64(i)+1)
		list = append(list, event.Sequenced{Position: positions[i], Event: events[i]})
	}
	opts := &store.EventImportOptions{Batch: m.between(1, 4)}
	m.first(func(ctx context.Context, s eventStream) error {
		return second(s.own.Import(ctx, stream(list, nil), opts))
	})
	done := must(m.stream().own.Import(m.ctx, stream(list, nil), opts))(m.t)
	skipped := len(m.model) - from
	m.stored(events, positions)
	if m.givingUp { // the first import may have stored some batches
		require.GreaterOrEqual(m.t, done.Skipped, skipped)
		skipped = done.Skipped
	}
	require.Equal(m.t, store.EventsImported{Events: len(list) - skipped, Skipped: skipped, Head: m.head()}, done)
}

func (m *eventMachine) truncate() {
	before := uint64(m.between(1, len(m.model)+2))
	m.first(func(ctx context.Context, s eventStream) error { return s.own.Truncate(ctx, before, nil) })
	err := m.stream().own.Truncate(m.ctx, before, nil)
	if before > m.head()+1 {
		require.ErrorIs(m.t, err, store.ErrInvalid)
		return
	}
	require.NoError(m.t, err)
	if m.whole = max(m.whole, before); m.whole > 1 {
		for _, err := range m.stream().Subscribe(m.ctx, event.All(), m.whole-1) {
			require.ErrorIs(m.t, err, event.ErrTruncated)
		}
	}
}

// fail makes a transaction fail. Nothing of it is stored, and the next
// transaction succeeds.
func (m *eventMachine) fail() {
	s := m.processes[0]
	m.breaks = one(m.Drawer, "insert", "commit")
	_, err := s.own.Append(m.ctx, m.events(1, 6), nil)
	m.breaks = ""
	require.ErrorIs(m.t, err, errBroken)
	m.judge()
}

// moment draws a time: zero, long ago, in the future, or at or next to an
// event's time.
func (m *eventMachine) moment() time.Time {
	at := one(m.Drawer, m.now.AddDate(-1, 0, 0), m.now.AddDate(1, 0, 0), time.Time{})
	if len(m.model) > 0 && m.IntN(3) > 0 {
		at = one(m.Drawer, m.model...).Time.Add(one(m.Drawer, 0, time.Nanosecond, -time.Nanosecond))
	}
	return at
}

// read compares a read. A read that reaches a truncated event ends with an
// error.
func (m *eventMachine) read() {
	var head uint64
	q, opts := m.eventQuery(), &event.ReadOptions{
		From:      one(m.Drawer, 0, uint64(m.between(0, len(m.model)+1)), uint64(m.between(0, len(m.model)+1)), math.MaxUint64),
		Limit:     one(m.Drawer, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 300),
		Backwards: m.Chance(2),
		OnlyLast:  m.Chance(4),
		Head:      &head,
	}
	if m.Chance(3) {
		opts.Since, opts.Until = m.moment(), m.moment()
	}
	want := expected(m.model, q, opts)
	if m.givingUp {
		var part []event.Sequenced
		done := m.first(func(ctx context.Context, s eventStream) (err error) {
			part, err = model.Collect(s.Read(ctx, q, opts))
			return err
		})
		require.LessOrEqual(m.t, len(part), len(want))
		require.True(m.t, slices.Equal(want[:len(part)], positionsOf(part)), "%+v, %+v: want %v, got %v", q, opts, want, positionsOf(part))
		require.True(m.t, !done || len(part) == len(want), "%+v, %+v: a read without an error is complete", q, opts)
	}
	list, err := model.Collect(m.stream().Read(m.ctx, q, opts))
	if i := slices.IndexFunc(want, func(at uint64) bool { return at < m.whole }); i >= 0 {
		var gone *event.TruncatedError
		require.ErrorAs(m.t, err, &gone)
		require.Equal(m.t, event.TruncatedError{Position: want[i], Before: m.whole}, *gone)
		want = want[:i]
	} else {
		require.NoError(m.t, err)
		if !opts.Backwards && opts.Limit == 0 && opts.From <= m.head() {
			require.Equal(m.t, len(expected(m.model, event.All(), &event.ReadOptions{Until: opts.Until})), int(head), "%+v", opts)
		}
	}
	require.True(m.t, slices.Equal(want, positionsOf(list)), "%+v, %+v: want %v, got %v", q, opts, want, positionsOf(list))
	for i := range list {
		was := m.model[list[i].Position-1]
		require.True(m.t, list[i].Equal(&was.Event) && list[i].Time.Equal(was.Time), "event %d", list[i].Position)
	}
}

func positionsOf(list []event.Sequenced) (positions []uint64) {
	for i := range list {
		positions = append(positions, list[i].Position)
	}
	return positions
}

// expected returns the positions of the events that a read must return.
func expected(stored []event.Sequenced, q event.Query, opts *event.ReadOptions) (want []uint64) {
	items := q.Items
	if len(items) == 0 {
		items = make([]event.Item, 1)
	}
	last := make([]uint64, len(items)) // of each item
	for _, e := range stored {
		inside := opts.From == 0 || (opts.Backwards && e.Position <= opts.From) || (!opts.Backwards && e.Position >= opts.From)
		inside = inside && !e.Time.Before(opts.Since) && (opts.Until.IsZero() || e.Time.Before(opts.Until))
		if !inside || !q.Matches(&e.Event) {
			continue
		}
		want = append(want, e.Position)
		for i := 0; opts.OnlyLast && i < len(items); i++ {
			if len(q.Items) == 0 || anyOf(items[i]).Matches(&e.Event) {
				last[i] = e.Position
			}
		}
	}
	if opts.OnlyLast {
		want = slices.DeleteFunc(want, func(at uint64) bool { return !slices.Contains(last, at) })
	}
	if opts.Backwards {
		slices.Reverse(want)
	}
	if opts.Limit > 0 && len(want) > opts.Limit {
		want = want[:opts.Limit]
	}
	return want
}

func (m *eventMachine) check() {
	report := must(m.stream().db.Check(m.ctx, nil))(m.t)
	require.NoError(m.t, report.Err())
	head := must(m.stream().Head(m.ctx))(m.t)
	require.Equal(m.t, m.head(), head)
}

var errBroken = errors.New("broken on purpose")
