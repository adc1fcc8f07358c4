package store

import (
	"context"
	"errors"
	"fmt"
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
	if schema.Runs {
		return compact.New(schema, d, compact.Options{Backlog: backlog})
	}
	return eav.New(schema, d, caps)
}

// quiet is how long nobody must have written before work that was put off is
// done. Before that it is thought about only; above its limit it is done between
// blocks. While there is less than a quarter of the limit, it waits for more of it
// until nobody has written for a lull: the same pages serve more changes then.
const (
	quiet = 10 * time.Millisecond
	lull  = 250 * time.Millisecond
)

// maintainer does what a layout puts off, between blocks. A nil maintainer does
// nothing.
type maintainer struct {
	db     *DB
	layout layout.Maintained

	wake  chan struct{} // run
	more  chan struct{} // ahead
	stop  context.CancelFunc
	done  sync.WaitGroup
	start sync.Once
	ctx   context.Context

	work    sync.Mutex   // one does slices at a time
	turn    sync.Mutex   // one thinks at a time
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
		left, err := maintained.Backlog(ctx, q)
		if left > 0 {
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

// hold lets a writer wait a little when more is put off than may be and nobody has
// thought yet about how to do it: on a busy machine thinking would lag behind for ever,
// until a block had to do it itself, which takes much longer.
func (m *maintainer) hold(ctx context.Context) {
	if m == nil || m.layout.Left() <= m.layout.Limit() {
		return
	}
	poke(m.more)
	for range holdFor / time.Millisecond {
		if m.layout.Prepared(1) || ctx.Err() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// holdFor is how long a writer waits for thinking.
const holdFor = 25 * time.Millisecond

// wrote tells that changes were committed.
func (m *maintainer) wrote() {
	if m == nil {
		return
	}
	m.start.Do(func() {
		m.done.Go(func() { m.on(m.wake, m.run) })
		m.done.Go(func() { m.on(m.more, m.ahead) })
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

// ahead thinks about slices while others are done and blocks are written, as soon
// as there is a batch of them.
func (m *maintainer) ahead() {
	if m.layout.Left() > m.layout.Limit()/4 {
		_ = m.prepare(m.ctx, layout.Ahead)
	}
}

// run does slices until nothing is left.
func (m *maintainer) run() {
	for m.idle() {
		if left, err := m.slice(m.ctx); err != nil || left == 0 {
			return
		}
	}
}

// idle waits until it is time for a slice, and returns false when the store is
// closed.
func (m *maintainer) idle() bool {
	for {
		rest := quiet - time.Duration(time.Now().UnixNano()-m.last.Load())
		if m.layout.Left() < m.layout.Limit()/4 {
			rest += lull - quiet
		}
		busy := m.writers.Load() > 0 || rest > 0
		if !busy || m.layout.Left() > m.layout.Limit() {
			return m.ctx.Err() == nil
		}
		select {
		case <-m.ctx.Done():
			return false
		case <-time.After(min(max(rest, time.Millisecond), quiet)):
		}
	}
}

// readerWait is how long thinking waits for a reader: the caller may hold all of
// them. Without one the work is done all the same, with the writer waiting longer.
const readerWait = 100 * time.Millisecond

// prepare thinks about the next slices unless so many batches have been thought
// about.
func (m *maintainer) prepare(ctx context.Context, batches int) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.layout.Prepared(batches) {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, readerWait)
	defer cancel()
	err := m.db.read(patient, m.layout.Prepare)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// slice does a slice of the work.
func (m *maintainer) slice(ctx context.Context) (left int, err error) {
	m.work.Lock()
	defer m.work.Unlock()
	if err := m.prepare(ctx, 1); err != nil {
		return 0, err
	}
	err = m.db.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		left, err = m.layout.Maintain(ctx, tx, func() bool { return m.writers.Load() > 0 })
		return err
	})
	poke(m.more)
	return left, err
}

// Settle does now what the layout puts off, block writers waiting between the
// slices, and returns when nothing is left. Layouts that put nothing off return
// at once.
func (e *Entities) Settle(ctx context.Context) error {
	if e.maintainer == nil {
		return nil
	}
	for {
		left, err := e.maintainer.slice(ctx)
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		if left == 0 {
			return nil
		}
	}
}
