package storetest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// giveUp does a random step twice: cancelled at one of its statements, and then
// whole, on the same handle. The first call was done whole or not at all, and
// after the second one the store agrees with the model.
func (m *eventMachine) giveUp() {
	calls := []func(){m.append, m.advance, m.move, m.read, m.importMore, m.giveUpOpen}
	if !m.many {
		calls = append(calls, m.truncate)
	}
	m.givingUp = true
	one(m.Drawer, calls...)()
	m.givingUp = false
	m.judge()
}

// first makes the cancelled call of giveUp, and in other steps none. It reports
// whether the call was done.
func (m *eventMachine) first(call func(ctx context.Context, s eventStream) error) (done bool) {
	return m.givingUp && m.interrupted(func(ctx context.Context) error { return call(ctx, m.processes[0]) }) == nil
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
