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
	if schema.Name == "compact" {
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

	wake  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
	start sync.Once
	ctx   context.Context

	turn    sync.Mutex   // one thinks or works at a time
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
	m := &maintainer{db: e.db, layout: maintained, wake: make(chan struct{}, 1), done: make(chan struct{})}
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

// wrote tells that changes were committed.
func (m *maintainer) wrote() {
	if m == nil {
		return
	}
	m.start.Do(func() { go m.run() })
	select {
	case m.wake <- struct{}{}:
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
	m.start.Do(func() { close(m.done) })
	<-m.done
}

func (m *maintainer) run() {
	defer close(m.done)
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
		}
		for m.idle() {
			// An error is the engine's: the next block meets it as well, and
			// tells its caller.
			if left, err := m.slice(m.ctx); err != nil || left == 0 {
				break
			}
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
		if m.layout.Left() > m.layout.Limit()/4 && m.prepareAlone() != nil {
			return false // the engine's error, which the next block meets as well
		}
		select {
		case <-m.ctx.Done():
			return false
		case <-time.After(min(max(rest, time.Millisecond), quiet)):
		}
	}
}

func (m *maintainer) prepareAlone() error {
	m.turn.Lock()
	defer m.turn.Unlock()
	return m.prepare(m.ctx)
}

// patience is how long thinking waits for a reader: the caller may hold all of
// them. Without one the work is done all the same, with the writer waiting longer.
const patience = 100 * time.Millisecond

func (m *maintainer) prepare(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := m.layout.Prepare(patient, m.db.read)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// slice does a slice of the work.
func (m *maintainer) slice(ctx context.Context) (left int, err error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.prepare(ctx); err != nil {
		return 0, err
	}
	err = m.db.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		left, err = m.layout.Maintain(ctx, tx, func() bool { return m.writers.Load() > 0 })
		return err
	})
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
