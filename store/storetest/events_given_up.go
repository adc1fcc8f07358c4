package storetest

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// giveUp cancels a call at one of its statements and repeats it on the same
// handle. The first call was done whole or not at all, and after the second one
// the store agrees with the model.
func (m *eventMachine) giveUp() {
	calls := []func(){m.giveUpAppend, m.giveUpAdvance, m.giveUpMove, m.giveUpRead, m.giveUpImport, m.giveUpOpen}
	if !m.many {
		calls = append(calls, m.giveUpTruncate)
	}
	one(m.Drawer, calls...)()
	m.judge()
}

// interrupted makes a call during which the context ends or a statement fails,
// if the call has enough statements.
func (m *eventMachine) interrupted(call func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	fault := func() error { cancel(); return nil }
	if m.Chance(2) {
		fault = func() error { return errBroken }
	}
	m.countdown.arm(int64(m.between(1, 12)), fault)
	err := call(ctx)
	m.countdown.disarm()
	if err != nil {
		require.NotErrorIs(m.t, err, store.ErrCorrupt)
	}
	return err
}

// identified draws events with IDs, so that the store recognizes a repetition.
func (m *eventMachine) identified() []event.Event {
	events := m.events(1, 6)
	for i := range events {
		m.ids++
		events[i].ID = idOf(m.ids)
	}
	return events
}

func (m *eventMachine) giveUpAppend() {
	s, events, cond := m.processes[0], m.identified(), m.condition()
	forbidden := m.conflicts(cond)
	err := m.interrupted(func(ctx context.Context) error {
		_, err := s.Append(ctx, events, cond)
		return err
	})
	require.False(m.t, err == nil && forbidden, "%+v", cond)
	positions, err := m.stream().Append(m.ctx, events, cond)
	if forbidden {
		m.requireConflict(cond, err)
		return
	}
	require.NoError(m.t, err)
	m.stored(events, positions)
}

func (m *eventMachine) giveUpAdvance() {
	s, events := m.processes[0], m.identified()
	c := event.Checkpoint{Consumer: "a", From: m.checkpoints["a"], To: uint64(m.between(0, len(m.model)))}
	_ = m.interrupted(func(ctx context.Context) error {
		_, err := s.Advance(ctx, c, events, nil)
		return err
	})
	m.stored(events, must(m.stream().Advance(m.ctx, c, events, nil))(m.t))
	m.checkpoints["a"] = c.To
}

// giveUpMove moves a consumer without events. Its checkpoint then shows whether
// the first call was done.
func (m *eventMachine) giveUpMove() {
	s := m.processes[0]
	c := event.Checkpoint{Consumer: "mover", From: m.checkpoints["mover"], To: uint64(m.between(0, len(m.model)))}
	err := m.interrupted(func(ctx context.Context) error {
		_, err := s.Advance(ctx, c, nil, nil)
		return err
	})
	at := must(m.stream().Checkpoint(m.ctx, c.Consumer))(m.t)
	if err == nil {
		require.Equal(m.t, c.To, at)
	}
	if at != c.To {
		require.Equal(m.t, c.From, at)
		must(m.stream().Advance(m.ctx, c, nil, nil))(m.t)
	}
	m.checkpoints[c.Consumer] = c.To
}

func (m *eventMachine) giveUpRead() {
	s, q := m.processes[0], m.eventQuery()
	opts := &event.ReadOptions{From: m.whole}
	var list []event.Sequenced
	err := m.interrupted(func(ctx context.Context) (err error) {
		list, err = model.Collect(s.Read(ctx, q, opts))
		return err
	})
	want := expected(m.model, q, opts)
	require.LessOrEqual(m.t, len(list), len(want))
	require.True(m.t, slices.Equal(want[:len(list)], positionsOf(list)), "%+v: want %v, got %v", q, want, positionsOf(list))
	require.True(m.t, err != nil || len(list) == len(want), "%+v: a read without an error has all", q)
}

// giveUpImport: an import skips the batches that a cancelled one has stored.
func (m *eventMachine) giveUpImport() {
	list, events := slices.Clone(m.model[m.whole-1:]), m.events(1, 6)
	known := len(list)
	var positions []uint64
	for i := range events {
		positions = append(positions, m.head()+uint64(i)+1)
		list = append(list, event.Sequenced{Position: positions[i], Event: events[i]})
	}
	s, opts := m.processes[0], &store.EventImportOptions{Batch: m.between(1, 4)}
	_ = m.interrupted(func(ctx context.Context) error {
		_, err := s.own.Import(ctx, stream(list, nil), opts)
		return err
	})
	done := must(m.stream().own.Import(m.ctx, stream(list, nil), opts))(m.t)
	m.stored(events, positions)
	require.Equal(m.t, known+len(events), done.Events+done.Skipped)
	require.GreaterOrEqual(m.t, done.Skipped, known)
	require.Equal(m.t, m.head(), done.Head)
}

func (m *eventMachine) giveUpTruncate() {
	before := uint64(m.between(1, len(m.model)+1))
	s := m.processes[0]
	_ = m.interrupted(func(ctx context.Context) error { return s.own.Truncate(ctx, before, nil) })
	require.NoError(m.t, m.stream().own.Truncate(m.ctx, before, nil))
	m.whole = max(m.whole, before)
}

// giveUpOpen opens the database again. The first attempt is cancelled and
// repeated on the same handle.
func (m *eventMachine) giveUpOpen() {
	m.judge()
	m.close()
	m.openWith(m.url, func(db *store.DB, opts *store.EventOptions) {
		err := m.interrupted(func(ctx context.Context) error {
			_, err := db.Events(ctx, opts)
			return err
		})
		if err == nil {
			*opts = store.EventOptions{} // a later call has the options of the first one
		}
	})
}
