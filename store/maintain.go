package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/internal/layout/eav"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// newLayout returns the layout of a schema.
func newLayout(schema schemas.Layout, d driver.Dialect, caps driver.Capabilities, backlog int) layout.Layout {
	if caps.Spreads {
		schema.Tables = slices.Concat(schema.Tables, schema.Spread)
	}
	if schema.Runs {
		// Payloads are fetched by a statement of their own where a join would not find
		// them by an index, or would fetch them from another machine.
		apart := caps.Spreads || !d.Traits().OrderedIndexes
		return compact.New(schema, compact.Options{Backlog: backlog, Apart: apart})
	}
	return eav.New(schema, d, caps)
}

// maintainer does what a layout puts off, between blocks, when the layout says that it is
// time. A nil maintainer does nothing.
type maintainer struct {
	db     *DB
	layout layout.Maintained

	wake  chan struct{} // run
	more  chan struct{} // prepare
	stop  context.CancelFunc
	done  sync.WaitGroup
	start sync.Once
	ctx   context.Context

	work    sync.Mutex   // one does slices at a time
	turn    sync.Mutex   // one prepares at a time
	writers atomic.Int32 // that want to write or are about to
	last    atomic.Int64 // when one had written, nanoseconds
}

// startMaintainer makes the maintainer of a layout that needs one, and begins
// with what is left from before.
func (e *Entities) startMaintainer(ctx context.Context) error {
	maintained, ok := e.layout.(layout.Maintained)
	if !ok || e.db.ro {
		return nil
	}
	m := &maintainer{db: e.db, layout: maintained, wake: make(chan struct{}, 1), more: make(chan struct{}, 1)}
	m.ctx, m.stop = context.WithCancel(context.Background())
	e.maintainer = m
	return e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		owed, err := maintained.Owed(ctx, q)
		if owed > 0 {
			m.wrote()
		}
		return err
	})
}

// enter announces a writer, and leave that it is done.
func (m *maintainer) enter() {
	if m != nil {
		m.writers.Add(1)
	}
}

func (m *maintainer) leave() {
	if m != nil {
		m.last.Store(time.Now().UnixNano())
		m.writers.Add(-1)
	}
}

// How long the maintainer waits: before it looks again whether it is time; a writer, when more
// is owed than should be, for a slice to be prepared, since on a busy machine preparing would lag
// behind for ever; and a slice for a view to be prepared in, since the caller may hold all readers.
const (
	poll     = time.Millisecond
	hold     = 25 * poll
	patience = 100 * poll
)

// hold lets a writer wait a little when so much is owed that preparing must catch up.
func (m *maintainer) hold(ctx context.Context) {
	if m == nil {
		return
	}
	_, late := m.layout.Due(0)
	if late {
		poke(m.more)
	}
	for rest := hold; late && rest > 0 && !m.layout.Prepared(false) && ctx.Err() == nil; rest -= poll {
		time.Sleep(poll)
	}
}

// wrote tells that changes were committed.
func (m *maintainer) wrote() {
	if m == nil {
		return
	}
	m.start.Do(func() {
		m.done.Go(func() { m.on(m.wake, m.run) })
		m.done.Go(func() { m.on(m.more, func() { _ = m.prepare(m.ctx, true) }) })
	})
	poke(m.wake)
	poke(m.more)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// close ends the work, in the middle if need be: it goes on when the store is
// opened again.
func (m *maintainer) close() {
	if m == nil {
		return
	}
	m.stop()
	m.start.Do(func() {})
	m.done.Wait()
}

// on calls f whenever c was poked, until the store is closed. An error of what f does
// is the engine's: the next block meets it as well, and tells its caller.
func (m *maintainer) on(c <-chan struct{}, f func()) {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-c:
			f()
		}
	}
}

// run does slices until nothing is owed.
func (m *maintainer) run() {
	for m.idle() {
		if owed, err := m.slice(m.ctx); err != nil || owed == 0 {
			return
		}
	}
}

// idle waits until it is time for a slice, and returns false when the store is
// closed.
func (m *maintainer) idle() bool {
	for {
		idle := time.Duration(0)
		if m.writers.Load() == 0 {
			idle = time.Duration(time.Now().UnixNano() - m.last.Load())
		}
		rest, _ := m.layout.Due(idle)
		if rest == 0 {
			return m.ctx.Err() == nil
		}
		select {
		case <-m.ctx.Done():
			return false
		case <-time.After(min(max(rest, poll), 10*poll)):
		}
	}
}

// prepare prepares slices, with ahead further ones too, unless that is done.
func (m *maintainer) prepare(ctx context.Context, ahead bool) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.layout.Prepared(ahead) {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := m.db.readBulk(patient, m.layout.Prepare)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// slice does a slice of the work.
func (m *maintainer) slice(ctx context.Context) (owed int, err error) {
	m.work.Lock()
	defer m.work.Unlock()
	if err := m.prepare(ctx, false); err != nil {
		return 0, err
	}
	err = m.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error {
		owed, err = m.layout.Maintain(ctx, tx, func() bool { return m.writers.Load() > 0 })
		return err
	})
	poke(m.more)
	return owed, err
}

// buildIndexes makes the indexes that EntityOptions.DeferIndexes left out, each in a
// transaction of its own.
func (e *Entities) buildIndexes(ctx context.Context) (err error) {
	if !e.deferred.Load() {
		return nil
	}
	defer wrap(&err, "build indexes")
	indexed, names := e.deferredIndexes()
	for _, name := range names {
		err := e.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error { return indexed.CreateIndex(ctx, tx, name) })
		if err != nil {
			return err
		}
	}
	err = e.db.write(ctx, func(ctx context.Context, tx driver.Tx) error { return e.db.meta.remove(ctx, tx, metaIndexes) })
	if err != nil {
		return err
	}
	e.deferred.Store(false)
	return e.analyzeAtOpen(ctx)
}

// deferredIndexes returns the layout's, and what makes them.
func (e *Entities) deferredIndexes() (layout.Indexed, []string) {
	indexed, ok := e.layout.(layout.Indexed)
	if !ok {
		return nil, nil
	}
	return indexed, indexed.DeferredIndexes()
}

// Backlog tells how much the layout has put off, in changes of entities. It grows while
// blocks come faster than they are compacted; for layouts that put nothing off it is zero.
func (e *Entities) Backlog(ctx context.Context) (owed int, err error) {
	maintained, ok := e.layout.(layout.Maintained)
	if !ok {
		return 0, nil
	}
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		owed, err = maintained.Owed(ctx, q)
		return err
	})
	return owed, err
}

// Flush does now what was put off, by the layout (see Backlog) or by
// EntityOptions.DeferIndexes, and returns when nothing is left; block writers wait between
// the slices.
func (e *Entities) Flush(ctx context.Context) (err error) {
	defer wrap(&err, "flush")
	err = e.buildIndexes(ctx)
	for owed := 1; err == nil && e.maintainer != nil && owed > 0; {
		owed, err = e.maintainer.slice(ctx)
	}
	return err
}
