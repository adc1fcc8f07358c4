package store

import (
	"context"
	"errors"
	"fmt"
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
		// Payloads are fetched by a separate statement if a join would not find
		// them by an index, or would fetch them from another machine.
		apart := caps.Spreads || !d.Traits().OrderedIndexes
		return compact.New(schema, compact.Options{Backlog: backlog, Apart: apart})
	}
	return eav.New(schema, d, caps)
}

// maintainer does a layout's deferred work, between blocks, when the layout
// asks for it. A nil maintainer does nothing.
type maintainer struct {
	db     *DB
	layout layout.Maintained

	wakeRun     chan struct{} // wakes run
	wakePrepare chan struct{} // wakes prepare
	stop        context.CancelFunc
	done        sync.WaitGroup
	start       sync.Once
	ctx         context.Context

	sliceMu   sync.Mutex   // held while a slice runs
	prepareMu sync.Mutex   // held while a slice is prepared
	writers   atomic.Int32 // number of writers that are waiting or writing
	lastWrite atomic.Int64 // end of the last write, Unix nanoseconds
}

// startMaintainer creates the maintainer of a layout that needs one, and starts
// with the backlog of earlier runs.
func (e *Entities) startMaintainer(ctx context.Context) error {
	maintained, ok := e.layout.(layout.Maintained)
	if !ok || e.db.ro {
		return nil
	}
	m := &maintainer{db: e.db, layout: maintained, wakeRun: make(chan struct{}, 1), wakePrepare: make(chan struct{}, 1)}
	m.ctx, m.stop = context.WithCancel(context.Background())
	e.maintainer = m
	owed, err := e.Backlog(ctx)
	if owed > 0 {
		m.wrote()
	}
	return err
}

// The waits of the maintainer and of writers. The maintainer asks the layout
// again after pollEvery. When the backlog is too large, a writer waits up to
// holdAtMost until a slice is prepared, because on a busy machine preparing
// would never catch up. Preparing waits up to viewWithin for a view, because
// the caller may hold all readers.
const (
	pollEvery  = time.Millisecond
	holdAtMost = 25 * pollEvery
	viewWithin = 100 * pollEvery
)

// enter announces a writer. It delays it for a short time when the backlog is
// too large.
func (m *maintainer) enter(ctx context.Context) {
	if m == nil {
		return
	}
	_, late := m.layout.Due(0)
	if late {
		notify(m.wakePrepare)
	}
	for rest := holdAtMost; late && rest > 0 && !m.layout.Prepared(false) && ctx.Err() == nil; rest -= pollEvery {
		time.Sleep(pollEvery)
	}
	m.writers.Add(1)
}

// leave ends what enter began.
func (m *maintainer) leave() {
	if m != nil {
		m.lastWrite.Store(time.Now().UnixNano())
		m.writers.Add(-1)
	}
}

// wrote reports that changes were committed.
func (m *maintainer) wrote() {
	if m == nil {
		return
	}
	m.start.Do(func() {
		m.done.Go(func() { m.on(m.wakeRun, m.run) })
		m.done.Go(func() { m.on(m.wakePrepare, func() { _ = m.prepare(m.ctx, true) }) })
	})
	notify(m.wakeRun)
	notify(m.wakePrepare)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// close stops the work, even in the middle: it continues when the store is
// opened again.
func (m *maintainer) close() {
	if m == nil {
		return
	}
	m.stop()
	m.start.Do(func() {})
	m.done.Wait()
}

// on calls f after each signal on c, until the store is closed. Errors of f are
// ignored here: they come from the engine, and the next block will fail with
// them too.
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

// run works through slices until there is no backlog.
func (m *maintainer) run() {
	for m.idle() {
		if owed, err := m.slice(m.ctx); err != nil || owed == 0 {
			return
		}
	}
}

// idle waits until the next slice is due, and returns false when the store is
// closed.
func (m *maintainer) idle() bool {
	for {
		idle := time.Duration(0)
		if m.writers.Load() == 0 {
			idle = time.Duration(time.Now().UnixNano() - m.lastWrite.Load())
		}
		rest, _ := m.layout.Due(idle)
		if rest == 0 {
			return m.ctx.Err() == nil
		}
		select {
		case <-m.ctx.Done():
			return false
		case <-time.After(min(max(rest, pollEvery), 10*pollEvery)):
		}
	}
}

// prepare prepares the next slice, and with ahead further ones, unless they are
// prepared already.
func (m *maintainer) prepare(ctx context.Context, ahead bool) error {
	m.prepareMu.Lock()
	defer m.prepareMu.Unlock()
	if m.layout.Prepared(ahead) {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, viewWithin)
	defer cancel()
	err := m.db.readBulk(patient, m.layout.Prepare)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// slice does one slice of the work and returns the remaining backlog.
func (m *maintainer) slice(ctx context.Context) (owed int, err error) {
	m.sliceMu.Lock()
	defer m.sliceMu.Unlock()
	if err := m.prepare(ctx, false); err != nil {
		return 0, err
	}
	err = m.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error {
		owed, err = m.layout.Maintain(ctx, tx, func() bool { return m.writers.Load() > 0 })
		return err
	})
	notify(m.wakePrepare)
	return owed, err
}

// buildIndexes creates the indexes that EntityOptions.DeferIndexes left out,
// each in a separate transaction.
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

// deferredIndexes returns the layout's deferred indexes, and the layout that
// creates them.
func (e *Entities) deferredIndexes() (layout.Indexed, []string) {
	indexed, ok := e.layout.(layout.Indexed)
	if !ok {
		return nil, nil
	}
	return indexed, indexed.DeferredIndexes()
}

// Backlog returns how much work the layout has deferred, in changes of
// entities. It grows while blocks arrive faster than they are merged. It is
// zero for layouts that defer nothing.
func (e *Entities) Backlog(ctx context.Context) (int, error) {
	maintained, ok := e.layout.(layout.Maintained)
	if !ok {
		return 0, nil
	}
	return inView(ctx, e.db, maintained.Owed)
}

// Flush does all work that the layout (see Backlog) or
// EntityOptions.DeferIndexes deferred, and returns when none is left. Writers
// of blocks wait between the slices.
func (e *Entities) Flush(ctx context.Context) (err error) {
	defer wrap(&err, "flush")
	err = e.buildIndexes(ctx)
	for owed := 1; err == nil && e.maintainer != nil && owed > 0; {
		owed, err = e.maintainer.slice(ctx)
	}
	return err
}

// analyzeFloor is the number of versions below which new statistics are not
// worth gathering.
const analyzeFloor = 1000

// grown counts new versions, and gathers the planner's statistics again when
// they have doubled, on layouts that use statistics. A failure is ignored,
// because statistics are only a hint, and the next doubling tries again.
func (e *Entities) grown(ctx context.Context, versions int) {
	if e.analyzable() == nil {
		return
	}
	e.mu.Lock()
	e.written += uint64(versions)
	due := e.written > max(e.analyzed, analyzeFloor)
	e.mu.Unlock()
	if !due || e.analyze(ctx) != nil {
		return
	}
	e.mu.Lock()
	e.analyzed += e.written
	e.written = 0
	e.mu.Unlock()
}

// analyzable returns the layout if it uses statistics, or nil.
func (e *Entities) analyzable() layout.Analyzed {
	if a, ok := e.layout.(layout.Analyzed); ok && a.Analyzed() {
		return a
	}
	return nil
}

func (e *Entities) analyze(ctx context.Context) error {
	return e.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error { return e.analyzable().Analyze(ctx, tx) })
}

// analyzeAtOpen gathers statistics for the versions that a store already has.
func (e *Entities) analyzeAtOpen(ctx context.Context) error {
	if e.analyzable() == nil || e.db.ro {
		return nil
	}
	var versions uint64
	err := e.db.readBulk(ctx, func(ctx context.Context, q driver.Querier) error {
		view, err := e.layout.View(ctx, q, 0)
		if err != nil {
			return err
		}
		tables, err := view.Rows(ctx)
		if err == nil {
			versions = tables[len(tables)-1].Rows
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("count versions: %w", err)
	}
	if versions == 0 {
		return nil
	}
	e.mu.Lock()
	e.analyzed = versions
	e.mu.Unlock()
	return e.analyze(ctx)
}
