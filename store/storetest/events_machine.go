package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// eventStep is one line of an event history: a call with all its arguments,
// like step for entities.
type eventStep struct {
	Do      string // a name that verb knows
	Wait    int64  // nanoseconds by which the clock moves before the call
	Process int    // that makes the call, of the processes that have the store open

	Events    []event.Event
	Condition *event.Condition
	Consumer  string
	From, To  uint64 // of a consumer; import: the events behind From come first; truncate: those before To
	Query     event.Query
	Options   event.ReadOptions

	Every int    // store.EventOptions.IndexEvery of a process that opens the store
	Batch int    // store.EventImportOptions.Batch
	Call  string // fail: the call to the engine that fails

	// GiveUp, if not zero, makes the call twice. In the first attempt the
	// context ends at the statement with this number or, with Broken, the
	// statement fails.
	GiveUp int
	Broken bool
}

// eventMachine is an event store and its model. It runs each step of a history
// on both and compares their answers.
type eventMachine struct {
	h       Harness
	t       testing.TB
	ctx     context.Context // with a deadline, so that a history that hangs fails
	now     time.Time       // the clock
	history []eventStep

	url       string
	processes []eventStream // the second one opened the database as another process does
	breaks    string        // the call of the first process that fails; empty: none
	countdown countdown     // gives up a call of the first process

	model       []event.Sequenced
	checkpoints map[string]uint64
	whole       uint64 // the first event that is not truncated
}

// newEventMachine returns a machine whose first step opens the store.
func newEventMachine(t testing.TB, h Harness) *eventMachine {
	return &eventMachine{
		ctx: historyContext(t), h: h, t: t, url: h.quickURL(t), checkpoints: map[string]uint64{}, whole: 1,
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// verb returns the method for a step; nil for an unknown one.
func (m *eventMachine) verb(name string) func(*eventStep) {
	return map[string]func(*eventStep){
		"open":     m.open,
		"other":    m.openOther,
		"restore":  m.restore,
		"append":   m.append,
		"alone":    m.alone,
		"import":   m.importMore,
		"advance":  m.advance,
		"truncate": m.truncate,
		"fail":     m.fail,
		"read":     m.read,
		"check":    func(*eventStep) { m.checkState() },
	}[name]
}

// do runs a step and records it in the history.
func (m *eventMachine) do(s eventStep) {
	m.history = append(m.history, s)
	m.now = m.now.Add(time.Duration(s.Wait))
	verb := m.verb(s.Do)
	require.NotNil(m.t, verb, "unknown step %q", s.Do)
	verb(&s)
}

// stream returns the store handle (process) that a step uses.
func (m *eventMachine) stream(s *eventStep) eventStream {
	return m.processes[s.Process%len(m.processes)]
}

func (m *eventMachine) head() uint64 { return uint64(len(m.model)) }

// open opens the store, or closes it and opens it again. The first attempt may
// be given up and repeated on the same handle.
func (m *eventMachine) open(s *eventStep) {
	m.close()
	rawURL := tap(func(call, sql string) error {
		if call == m.breaks {
			return errBroken
		}
		return m.countdown.see(call, sql)
	}).tapped(m.t, m.url, true)
	db := must(store.Open(m.ctx, rawURL, nil))(m.t)
	opts := m.options(s)
	if m.first(s, func(ctx context.Context) error { return second(db.Events(ctx, &opts)) }) {
		opts = store.EventOptions{} // a later call has the options of the first one
	}
	m.processes = append(m.processes, m.h.connected(m.t, streamOf(m.t, db, rawURL, opts)))
}

// options returns the options of a process that opens the store.
func (m *eventMachine) options(s *eventStep) store.EventOptions {
	return store.EventOptions{LockedRows: 4, IndexEvery: s.Every, Now: func() time.Time { return m.now }}
}

func (m *eventMachine) close() {
	for _, s := range slices.Backward(m.processes) {
		require.NoError(m.t, s.db.Close())
	}
	m.processes = nil
}

// openOther opens the database a second time, if the engine allows that.
func (m *eventMachine) openOther(s *eventStep) {
	if len(m.processes) == 1 && m.processes[0].db.Engine().Capabilities().MultiProcess {
		db := must(store.Open(m.ctx, m.url, nil))(m.t)
		m.processes = append(m.processes, streamOf(m.t, db, m.url, m.options(s)))
	}
}

// restore continues with a store that was restored from a backup.
func (m *eventMachine) restore(s *eventStep) {
	var file bytes.Buffer
	must(m.stream(s).db.Backup(m.ctx, &file, nil))(m.t)
	m.close()
	m.url = m.h.quickURL(m.t)
	restored := must(store.Open(m.ctx, m.url, nil))(m.t)
	_, err := restored.Restore(m.ctx, &file, nil)
	require.NoError(m.t, errors.Join(err, restored.Close()))
	m.open(s)
}

// first makes the first attempt of a step with GiveUp; for other steps it does
// nothing. It reports whether the attempt was stored: completely, or not at
// all.
func (m *eventMachine) first(s *eventStep, call func(ctx context.Context) error) (done bool) {
	if s.GiveUp == 0 {
		return false
	}
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	m.countdown.arm(int64(s.GiveUp), func() error {
		if s.Broken {
			return errBroken
		}
		cancel()
		return nil
	})
	err := call(ctx)
	m.countdown.disarm()
	if err != nil {
		require.NotErrorIs(m.t, err, store.ErrCorrupt)
	}
	return err == nil
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

// repeated returns the events of the model that have the IDs of events, and
// whether they are all of them and unchanged.
func (m *eventMachine) repeated(events []event.Event) (known []event.Sequenced, same bool) {
	same = true
	for i := range events {
		at := slices.IndexFunc(m.model, func(e event.Sequenced) bool { return !e.ID.IsZero() && e.ID == events[i].ID })
		if same = same && at >= 0 && m.model[at].Equal(&events[i]); at >= 0 {
			known = append(known, m.model[at])
		}
	}
	return known, same
}

// invalid reports whether the store must refuse the arguments of a step.
func (s *eventStep) invalid() bool {
	return len(s.Events) > 0 && event.Validate(s.Events) != nil ||
		s.Condition != nil && s.Condition.FailIfEventsMatch.Validate() != nil
}

// append appends events, which the store may have already.
func (m *eventMachine) append(s *eventStep) {
	known, same := m.repeated(s.Events)
	done := m.first(s, func(ctx context.Context) error { return second(m.processes[0].Append(ctx, s.Events, s.Condition)) })
	positions, err := m.stream(s).Append(m.ctx, s.Events, s.Condition)
	switch {
	case len(s.Events) == 0 || s.invalid():
		require.ErrorIs(m.t, err, store.ErrInvalid)
	case len(known) > 0 && same:
		require.NoError(m.t, err)
		require.Equal(m.t, positionsOf(known), positions)
	case len(known) > 0:
		require.ErrorIs(m.t, err, event.ErrDuplicate)
	case m.conflicts(s.Condition):
		require.False(m.t, done, "%+v", s.Condition)
		m.requireConflict(s.Condition, err)
	default:
		require.NoError(m.t, err, "%+v", s.Condition)
		m.stored(s.Events, positions)
	}
}

// advance moves a consumer, with events or without, or is refused.
func (m *eventMachine) advance(s *eventStep) {
	c, was := event.Checkpoint{Consumer: s.Consumer, From: s.From, To: s.To}, m.checkpoints[s.Consumer]
	known, _ := m.repeated(s.Events)
	done := m.first(s, func(ctx context.Context) error { return second(m.processes[0].Advance(ctx, c, s.Events, s.Condition)) })
	if s.GiveUp > 0 && len(s.Events) == 0 { // the checkpoint shows whether the first call was done
		at := must(m.stream(s).Checkpoint(m.ctx, c.Consumer))(m.t)
		require.True(m.t, at == was && !done || at == c.To && c.From == was)
		c.From, was = c.From+at-was, at
	}
	positions, err := m.stream(s).Advance(m.ctx, c, s.Events, s.Condition)
	switch {
	case s.invalid():
		require.ErrorIs(m.t, err, store.ErrInvalid)
		return
	case len(known) > 0: // only a history that was reduced has events of an Advance again
		return
	case m.conflicts(s.Condition):
		m.requireConflict(s.Condition, err)
	case c.From != was:
		require.ErrorIs(m.t, err, event.ErrCheckpoint)
	case c.To > m.head():
		require.ErrorIs(m.t, err, store.ErrInvalid)
	default:
		require.NoError(m.t, err)
		m.stored(s.Events, positions)
		m.checkpoints[s.Consumer] = c.To
	}
	at := must(m.stream(s).Checkpoint(m.ctx, s.Consumer))(m.t)
	require.Equal(m.t, m.checkpoints[s.Consumer], at)
}

// alone appends in a transaction that no other append shares.
func (m *eventMachine) alone(s *eventStep) {
	timed := make([]event.Sequenced, len(s.Events))
	for i := range s.Events {
		timed[i].Event = s.Events[i]
	}
	if len(timed) > 0 {
		m.stored(s.Events, must(m.stream(s).own.AppendTimed(m.ctx, timed))(m.t))
	}
}

// importMore imports events. The store has some of them already.
func (m *eventMachine) importMore(s *eventStep) {
	from := min(max(s.From, m.whole-1), m.head())
	list := slices.Clone(m.model[from:])
	var positions []uint64
	for i := range s.Events {
		positions = append(positions, m.head()+uint64(i)+1)
		list = append(list, event.Sequenced{Position: positions[i], Event: s.Events[i]})
	}
	opts := &store.EventImportOptions{Batch: s.Batch}
	m.first(s, func(ctx context.Context) error {
		return second(m.processes[0].own.Import(ctx, stream(list, nil), opts))
	})
	done := must(m.stream(s).own.Import(m.ctx, stream(list, nil), opts))(m.t)
	skipped := len(m.model) - int(from)
	m.stored(s.Events, positions)
	if s.GiveUp > 0 { // the first import may have stored some batches
		require.GreaterOrEqual(m.t, done.Skipped, skipped)
		skipped = done.Skipped
	}
	require.Equal(m.t, store.EventsImported{Events: len(list) - skipped, Skipped: skipped, Head: m.head()}, done)
}

func (m *eventMachine) truncate(s *eventStep) {
	before := max(s.To, 1)
	m.first(s, func(ctx context.Context) error { return m.processes[0].own.Truncate(ctx, before, nil) })
	err := m.stream(s).own.Truncate(m.ctx, before, nil)
	if before > m.head()+1 {
		require.ErrorIs(m.t, err, store.ErrInvalid)
		return
	}
	require.NoError(m.t, err)
	if m.whole = max(m.whole, before); m.whole > 1 {
		for _, err := range m.stream(s).Subscribe(m.ctx, event.All(), m.whole-1) {
			require.ErrorIs(m.t, err, event.ErrTruncated)
		}
	}
}

// fail makes a transaction fail. Nothing of it is stored.
func (m *eventMachine) fail(s *eventStep) {
	if len(s.Events) == 0 {
		return
	}
	m.breaks = s.Call
	_, err := m.processes[0].own.Append(m.ctx, s.Events, nil)
	m.breaks = ""
	require.ErrorIs(m.t, err, errBroken)
}

// read compares a read. A read that reaches a truncated event ends with an
// error.
func (m *eventMachine) read(s *eventStep) {
	var head uint64
	q, opts := s.Query, s.Options
	opts.Head = &head
	if q.Validate() != nil {
		require.ErrorIs(m.t, second(model.Collect(m.stream(s).Read(m.ctx, q, &opts))), store.ErrInvalid)
		return
	}
	want := expected(m.model, q, &opts)
	if s.GiveUp > 0 {
		var part []event.Sequenced
		done := m.first(s, func(ctx context.Context) (err error) {
			part, err = model.Collect(m.processes[0].Read(ctx, q, &opts))
			return err
		})
		require.LessOrEqual(m.t, len(part), len(want))
		require.True(m.t, slices.Equal(want[:len(part)], positionsOf(part)), "want %v, got %v", want, positionsOf(part))
		require.True(m.t, !done || len(part) == len(want), "a read without an error is complete")
	}
	list, err := model.Collect(m.stream(s).Read(m.ctx, q, &opts))
	if i := slices.IndexFunc(want, func(at uint64) bool { return at < m.whole }); i >= 0 {
		var gone *event.TruncatedError
		require.ErrorAs(m.t, err, &gone)
		require.Equal(m.t, event.TruncatedError{Position: want[i], Before: m.whole}, *gone)
		want = want[:i]
	} else {
		require.NoError(m.t, err)
		if !opts.Backwards && opts.Limit == 0 && opts.From <= m.head() {
			require.Equal(m.t, len(expected(m.model, event.All(), &event.ReadOptions{Until: opts.Until})), int(head))
		}
	}
	require.True(m.t, slices.Equal(want, positionsOf(list)), "want %v, got %v", want, positionsOf(list))
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

// checkState runs the store's check, and compares the head.
func (m *eventMachine) checkState() {
	s := m.processes[len(m.processes)-1]
	report := must(s.db.Check(m.ctx, nil))(m.t)
	require.NoError(m.t, report.Err())
	require.Equal(m.t, m.head(), must(s.Head(m.ctx))(m.t))
}

var errBroken = errors.New("broken on purpose")
